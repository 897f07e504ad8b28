// Policies from a file: read once, or watched.
#include "lib/core/base/descriptor.hpp"
#include "policy_set_data.hpp"

#include <httpretry/log/log.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>

namespace httpretry {

namespace {

// The state of a file according to the file system, or all zeros if there is no file. Times alone
// are not sufficient, because a file may change twice within a tick of the file system's clock.
using FileState = std::tuple<dev_t, ino_t, off_t, time_t, std::int64_t, time_t, std::int64_t>;

FileState state_from(const struct stat& status) {
  return {status.st_dev,         status.st_ino,          status.st_size,
          status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
          status.st_ctim.tv_nsec};
}

struct FileText {
  std::string text;
  FileState state;      // the state before the file was read
  std::string problem;  // why it could not be read; empty otherwise
};
enum class FileKind : std::uint8_t { Any, Regular };

// Returns the result of a file that could not be read, by default with the text for `errno`.
FileText failed(std::string problem = std::strerror(errno)) { return {{}, {}, std::move(problem)}; }

FileState state_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? state_from(status) : FileState();
}

// Reads the text and the state of a policy file. If that fails, the result has only a problem.
// Stops soon after the maximum size of a policy file, because check_policies refuses a longer text
// anyway. FileKind::Regular refuses a pipe or a device, which cannot be read again when it changes.
FileText read_file(const std::string& path, FileKind kind) {
  // Without O_NONBLOCK, `open` waits for a writer if the file is a pipe. That is right only for
  // FileKind::Any, which may be a pipe whose writer is slow.
  const auto no_wait = kind == FileKind::Regular ? O_NONBLOCK : 0;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | no_wait));
  struct stat status {};
  // `failed` without an argument takes the problem from `errno`.
  if (!file.is_open() || fstat(file.get(), &status) != 0) return failed();
  if (kind == FileKind::Regular && !S_ISREG(status.st_mode))
    return failed("it is not a regular file");
  // Takes the state (inode, size and times) before it reads the text, so that a change during the
  // reading is noticed later.
  FileText file_text{.text = {}, .state = state_from(status), .problem = {}};
  std::array<char, 65536> block{};
  while (file_text.text.size() <= kMaxJsonText) {
    const auto count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;  // interrupted by a signal
    if (count < 0) return failed();
    if (count == 0) break;  // the end of the file
    file_text.text.append(block.data(), static_cast<std::size_t>(count));
  }
  return file_text;
}

constexpr auto kCheckEvery = std::chrono::seconds(1);

Problem unread_problem(const std::string& path, const std::string& why) {
  Problem problem;
  problem.file = path;
  problem.message = "cannot be read: " + why;
  return problem;
}

void log_policy_reload(const PolicyReload& reload) {
  std::string lines;
  for (const auto& problem : reload.problems) lines += "\n" + to_string(problem);
  if (reload.accepted) {
    write_log(LogLevel::Info,
              "httpretry: the policies of " + reload.file + " were reloaded" + lines);
  } else {
    write_log(LogLevel::Error, "httpretry: " + reload.file +
                                   " is refused; the previous policies stay in force:" + lines);
  }
}

constexpr std::size_t kMostChangedBudgets = 100;

// The policies of a set by keys that stay the same when the file is reloaded.
using PoliciesByPlace = std::map<std::string, const RetryPolicy*>;

PoliciesByPlace policies_by_place(const PolicySet::Data& set) {
  PoliciesByPlace policies{{"", set.fallback.policy.get()}};
  for (const auto& one : set.policies) policies.emplace("policy " + one.name, one.policy.get());
  for (const auto& one : set.entries) {
    policies.emplace(one.resolved.identity, one.resolved.policy.get());
  }
  return policies;
}

// Appends the budgets whose numbers differ between the old and the new policies of a reloaded file.
// Clients use the list to carry over what calls have already taken from a budget. A budget of
// another kind or scope counts as a new budget. The latest changes are the last ones, and only the
// latest kMostChangedBudgets stay.
void add_changed_budgets(std::vector<ChangedBudget>& changes, const PolicySet& old_set,
                         const PolicySet& new_set) {
  const auto old_policies = policies_by_place(PolicySet::Data::of(old_set));
  std::vector<ChangedBudget> added;
  for (const auto& [place, policy] : policies_by_place(PolicySet::Data::of(new_set))) {
    const auto old_policy = old_policies.find(place);  // the place is the same in both sets
    if (old_policy == old_policies.end() || added.size() == kMostChangedBudgets) continue;
    const auto& old_budget = old_policy->second->budget;
    const auto& new_budget = policy->budget;
    const bool is_new = new_budget.kind != old_budget.kind || new_budget.scope != old_budget.scope;
    if (is_new || new_budget == old_budget) continue;
    // Several policies may have the same budget, for example that of one preset.
    const ChangedBudget change(old_budget, new_budget);
    if (std::ranges::find(added, change) == added.end()) added.push_back(change);
  }
  changes.insert(changes.end(), added.begin(), added.end());
  if (changes.size() > kMostChangedBudgets) {  // drops the oldest changes
    changes.erase(changes.begin(), changes.end() - kMostChangedBudgets);
  }
}

}  // namespace

// A watched file, and the policies of its last valid version. Thread-safe.
class PolicySource::Watch {
 public:
  Watch(std::string path, PolicySet first, const FileText& file)
      : path_(std::move(path)),
        absolute_path_(std::filesystem::absolute(path_).string()),
        last_state_(file.state),
        digest_(digest(file.text)),
        current_(std::move(first)) {}

  // Returns the policies. Checks the file first if its last check is at least a second ago.
  Current current(Time now) {
    if (begin_check(now)) check_file();
    return in_force();
  }

  Current in_force() const {
    const std::lock_guard lock(current_mutex_);
    return current_;
  }

  Result<PolicySet> reload() {
    const auto reload = [this] {
      const std::lock_guard lock(mutex_);
      return read(Report::Always);
    }();
    log_policy_reload(*reload);
    if (!reload->accepted) return Error(Errc::InvalidRequest, error_lines(reload->problems));
    return in_force().policies;
  }

 private:
  static std::size_t digest(const std::string& text) { return std::hash<std::string>()(text); }

  // Returns true to one of the calls that find that the file is due for a check. Sets the time of
  // the last check.
  bool begin_check(Time now) {
    auto last = last_check_.load(std::memory_order_relaxed);
    // `now` may be long before the last check: each scheduler has its own clock.
    if (std::chrono::abs(now - Time(Duration(last))) < kCheckEvery) return false;
    return last_check_.compare_exchange_strong(last, Duration(now.time_since_epoch()).count(),
                                               std::memory_order_relaxed);
  }

  void check_file() {
    std::shared_ptr<const PolicyReload> reload;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) return;  // another thread reads the file
      if (settled_ && state_of(absolute_path_) == last_state_) return;
      reload = read(Report::Changes);
    }
    if (reload) log_policy_reload(*reload);
  }

  enum class Report : std::uint8_t { Always, Changes };

  // Reads the file, and publishes its policies or what is wrong with it. With Report::Changes,
  // returns nullptr instead if neither the text nor the problem of reading it has changed.
  std::shared_ptr<const PolicyReload> read(Report report) {
    const auto file = read_file(absolute_path_, FileKind::Regular);
    // Two writes within one tick of the file system's clock may leave the same state. So the file
    // is read at each check until two checks in a row have found the same state.
    settled_ = file.state == last_state_;
    last_state_ = file.state;
    const auto old_problem = std::exchange(read_problem_, file.problem);
    if (!file.problem.empty()) {
      if (file.problem == old_problem && report == Report::Changes) return nullptr;
      return publish(std::nullopt, {unread_problem(path_, file.problem)});
    }
    const auto old_digest = std::exchange(digest_, digest(file.text));
    const bool is_unchanged = digest_ == old_digest && old_problem.empty();
    if (is_unchanged && report == Report::Changes) return nullptr;
    auto checked = check_policies(file.text, path_);
    return publish(std::move(checked.set), std::move(checked.problems));
  }

  // Puts the policies in force, or keeps those before if `set` is empty because the file has
  // problems. Returns the event, which calls and the log report.
  std::shared_ptr<const PolicyReload> publish(std::optional<PolicySet> set,
                                              std::vector<Problem> problems) {
    auto reload = std::make_shared<PolicyReload>();
    reload->file = path_;
    reload->accepted = set.has_value();
    reload->problems = std::move(problems);
    reload->number = ++reloads_;
    const auto before = in_force();
    if (before.reload) reload->changed_budgets = before.reload->changed_budgets;
    if (set) add_changed_budgets(reload->changed_budgets, before.policies, *set);
    Current next(set ? *std::move(set) : before.policies);
    next.reload = reload;
    {
      const std::lock_guard lock(current_mutex_);
      std::swap(current_, next);
    }
    return reload;  // `next`, which now holds the old policies, is destroyed without the lock
  }

  const std::string path_;           // for messages
  const std::string absolute_path_;  // still names the file after the program calls chdir
  std::mutex mutex_;                 // held by the thread that reads the file; guards the next five
  FileState last_state_;             // when the file was last read
  bool settled_ = false;             // its last two reads found the same state
  std::size_t digest_;
  std::string read_problem_;  // why the file could not be read at the last check; empty if it was
  std::uint64_t reloads_ = 0;
  std::atomic<Duration::rep> last_check_ = 0;
  mutable std::mutex current_mutex_;
  Current current_;
};

Result<PolicySet> PolicySet::load(const std::string& path) {
  const auto file = read_file(path, FileKind::Any);
  if (file.problem.empty()) return parse_policies(file.text, path);
  return Error(Errc::InvalidRequest, "cannot read the policy file " + path + ": " + file.problem);
}

PolicySource::PolicySource(RetryPolicy policy) {
  ResolvedPolicy for_all_requests;
  for_all_requests.policy = std::make_shared<const RetryPolicy>(std::move(policy));
  policies_ = PolicySet(std::move(for_all_requests));
}

Result<PolicySource> PolicySource::watch(std::string path) {
  const auto file = read_file(path, FileKind::Regular);
  if (!file.problem.empty()) {
    return Error(Errc::InvalidRequest, to_string(unread_problem(path, file.problem)));
  }
  auto policies = parse_policies(file.text, path);
  if (!policies) return std::move(policies.error());
  return PolicySource(std::make_shared<Watch>(std::move(path), *std::move(policies), file));
}

PolicySource::Current PolicySource::current(Time now) const {
  return watch_ ? watch_->current(now) : Current(policies_);
}

PolicySet PolicySource::in_force() const {
  return watch_ ? watch_->in_force().policies : policies_;
}

Result<PolicySet> PolicySource::reload() const { return watch_ ? watch_->reload() : policies_; }

}  // namespace httpretry
