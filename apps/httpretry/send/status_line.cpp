#include "send/status_line.hpp"

#include "cli/message.hpp"
#include "cli/text.hpp"

#include <httpretry/chain/call.hpp>

#include <unistd.h>
#include <mutex>
#include <set>

namespace httpretry::cli {
namespace {

// OneCall shows the last attempt of a call that waits for a retry.
class OneCall final : public Observer {
 public:
  explicit OneCall(PolicySet policies) : policies_(std::move(policies)) {}

  void attempt_started(const Call& /*call*/, const Request& /*request*/,
                       int /*number*/) noexcept override {
    show_status("");
  }

  void attempt_ended(const Call& /*call*/, const Request& request,
                     const Attempt& attempt) noexcept override {
    if (!attempt.retried) return show_status("");
    auto line = "attempt " + std::to_string(attempt.number) + of_how_many(request) + ": " +
                attempt_text(attempt) + ", waiting " +
                duration_text(attempt.wait.value_or(Duration{}));
    if (attempt.server_delay)
      line += " (server asked " + duration_text(*attempt.server_delay) + ")";
    show_status(line + "…");
  }

  void call_ended(const Call& /*call*/, const Outcome& /*outcome*/) noexcept override {
    show_status("");
  }

 private:
  [[nodiscard]] std::string of_how_many(const Request& request) const {
    if (!request.parsed_url()) return {};
    const auto& most = policy_for(policies_, request).policy->max_attempts;
    return most ? " of " + std::to_string(*most) : std::string();
  }

  PolicySet policies_;
};

// ManyCalls counts the calls of a run with -Z. It is thread-safe, because several threads call it.
class ManyCalls final : public Observer {
 public:
  explicit ManyCalls(std::size_t calls) : calls_(calls) {}

  void call_started(const Call& /*call*/, const Request& /*request*/) noexcept override {
    change([&] { ++running_; });
  }
  void attempt_ended(const Call& call, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    if (attempt.retried) change([&] { waiting_.insert(call.id()); });
  }
  void attempt_started(const Call& call, const Request& /*request*/,
                       int /*number*/) noexcept override {
    change([&] { waiting_.erase(call.id()); });
  }
  void call_ended(const Call& call, const Outcome& outcome) noexcept override {
    const auto reason = history_of(outcome).stop_reason;
    change([&] {
      waiting_.erase(call.id());
      --running_;
      ++done_;
      if (reason != Reason::Success) ++failed_;
    });
  }

 private:
  template <class Change>
  void change(Change apply) {
    const std::lock_guard lock(mutex_);
    apply();
    if (done_ == calls_) return show_status("");
    auto line = std::to_string(done_) + " of " + std::to_string(calls_) + " done, " +
                std::to_string(running_) + " running";
    if (!waiting_.empty()) line += ", " + std::to_string(waiting_.size()) + " of them waiting";
    if (failed_ > 0) line += ", " + std::to_string(failed_) + " failed";
    show_status(line + "…");
  }

  std::mutex mutex_;
  std::size_t calls_;
  std::size_t done_ = 0;
  std::size_t running_ = 0;
  std::set<std::uint64_t> waiting_;
  std::size_t failed_ = 0;
};

}  // namespace

bool shows_status_line(const SendOptions& options) {
  const bool asked = options.progress && !options.silent && !options.trace && !options.verbose;
  return asked && ::isatty(STDERR_FILENO) == 1;
}

std::shared_ptr<Observer> status_line(const SendOptions& options, const PolicySet& policies) {
  if (options.parallel) return std::make_shared<ManyCalls>(options.urls.size());
  return std::make_shared<OneCall>(policies);
}

}  // namespace httpretry::cli
