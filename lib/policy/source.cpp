#include <httpretry/policy/policy_set.hpp>

#include "lib/json/problems.hpp"
#include "lib/policy/policy_set_data.hpp"
#include "lib/policy/text.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace httpretry {

namespace {

constexpr auto kBetweenLooks = std::chrono::seconds(1);

Problem unread(const std::string& path, const std::string& why) {
  Problem problem;
  problem.file = path;
  problem.message = "cannot be read: " + why;
  return problem;
}

}  // namespace

// One file. What is in force is read by many and replaced by one at a time: readers count
// themselves in and out, and what was replaced is freed when none of them is inside.
class PolicySource::Watch {
 public:
  Watch(std::string path, PolicySet first, const policy_file::FileText& file)
      : path_(std::move(path)),
        seen_(file.state),
        digest_(digest(file.text)),
        current_(new Current(std::move(first))) {}
  ~Watch() { delete current_.load(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  Current current(Time now) {
    if (due(now)) look();
    return in_force();
  }

  Result<PolicySet> reload() {
    const auto reload = [this] {
      const std::lock_guard lock(mutex_);
      return read(true);
    }();
    log_policy_reload(*reload);
    if (!reload->accepted) {
      return Error(Errc::InvalidRequest, error_lines(reload->problems));
    }
    return in_force().policies;
  }

 private:
  static std::size_t digest(const std::string& text) { return std::hash<std::string>()(text); }

  // Of the calls that find it so, one looks.
  bool due(Time now) {
    auto last = looked_.load(std::memory_order_relaxed);
    // A clock that is behind the one of the last look is another scheduler's.
    if (std::chrono::abs(now - Time(Duration(last))) < kBetweenLooks) return false;
    return looked_.compare_exchange_strong(last, Duration(now.time_since_epoch()).count(),
                                           std::memory_order_relaxed);
  }

  void look() {
    std::shared_ptr<const PolicyReload> reload;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) return;  // it is being read
      free_replaced();
      if (settled_ && policy_file::state_of(path_) == seen_) return;
      reload = read(false);
    }
    if (reload) log_policy_reload(*reload);
  }

  // nullptr where there is nothing new to say, unless it is `wanted`.
  std::shared_ptr<const PolicyReload> read(bool wanted) {
    const auto file = policy_file::read_file(path_, policy_file::FileKind::Regular);
    // A file may be written again within the same tick of its clock, so that it looks the same:
    // only what was the same at two looks is read no more.
    settled_ = file.state == seen_;
    seen_ = file.state;
    if (!file.problem.empty()) return refused_without_text(file.problem, wanted);
    const auto before = std::exchange(digest_, digest(file.text));
    const auto was_unread = !std::exchange(unread_, {}).empty();
    if (digest_ == before && !was_unread && !wanted) return nullptr;
    auto checked = check_policies(file.text, path_);
    return publish(std::move(checked.set), std::move(checked.problems));
  }
  std::shared_ptr<const PolicyReload> refused_without_text(const std::string& why, bool wanted) {
    if (std::exchange(unread_, why) == why && !wanted) return nullptr;
    return publish(std::nullopt, {unread(path_, why)});
  }

  std::shared_ptr<const PolicyReload> publish(std::optional<PolicySet> set,
                                              std::vector<Problem> problems) {
    auto reload = std::make_shared<PolicyReload>();
    reload->file = path_;
    reload->accepted = set.has_value();
    reload->problems = std::move(problems);
    reload->number = ++reloads_;
    auto fresh = std::make_unique<Current>(set ? *std::move(set) : in_force().policies);
    fresh->reload = reload;
    replaced_.reserve(replaced_.size() + 1);
    replaced_.emplace_back(current_.exchange(fresh.release()));
    free_replaced();
    return reload;
  }

  // The three are sequentially consistent: whoever is not seen in `readers_` after an exchange sees
  // what was exchanged.
  Current in_force() const {
    readers_.fetch_add(1);
    auto copy = *current_.load();
    readers_.fetch_sub(1);
    return copy;
  }
  void free_replaced() {
    if (readers_.load() == 0) replaced_.clear();
  }

  const std::string path_;
  std::mutex mutex_;  // held by whoever reads the file; guards the next six
  policy_file::FileState seen_;
  bool settled_ = false;
  std::size_t digest_;
  std::string unread_;  // why it could not be read when it was looked at last
  std::uint64_t reloads_ = 0;
  std::vector<std::unique_ptr<Current>> replaced_;
  std::atomic<Duration::rep> looked_ = 0;
  mutable std::atomic<int> readers_ = 0;
  std::atomic<Current*> current_;
};

PolicySource::PolicySource(PolicySet policies) : source_(std::move(policies)) {}
PolicySource::PolicySource(std::shared_ptr<Watch> watch) : source_(std::move(watch)) {}

Result<PolicySource> PolicySource::watch(std::string path) {
  const auto file = policy_file::read_file(path, policy_file::FileKind::Regular);
  if (!file.problem.empty()) {
    return Error(Errc::InvalidRequest, to_string(unread(path, file.problem)));
  }
  auto policies = parse_policies(file.text, path);
  if (!policies) return std::move(policies.error());
  return PolicySource(std::make_shared<Watch>(std::move(path), *std::move(policies), file));
}

PolicySource::Current PolicySource::current(Time now) const {
  if (const auto* const set = std::get_if<PolicySet>(&source_)) return Current(*set);
  return std::get<std::shared_ptr<Watch>>(source_)->current(now);
}

Result<PolicySet> PolicySource::reload() const {
  if (const auto* const set = std::get_if<PolicySet>(&source_)) return *set;
  return std::get<std::shared_ptr<Watch>>(source_)->reload();
}

}  // namespace httpretry
