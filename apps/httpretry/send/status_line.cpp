#include "send/status_line.hpp"

#include "cli/message.hpp"
#include "cli/text.hpp"
#include "send/progress_bar.hpp"

#include <httpretry/chain/call.hpp>

#include <unistd.h>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace httpretry::cli {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// OneCall shows the last attempt of a call that waits for a retry, the progress of a long body, and
// how long an attempt has had no response. A thread draws the last of these every second.
class OneCall final : public StatusLine {
 public:
  explicit OneCall(PolicySet policies)
      : policies_(std::move(policies)),
        ticker_([this](const std::stop_token& stop) { run(stop); }) {}

  void call_started(const Call& /*call*/, const Request& /*request*/) noexcept override {
    count_from_start();
  }
  void redirected(const Call& /*call*/, const Request& /*next*/) noexcept override {
    count_from_start();
  }

  void attempt_started(const Call& /*call*/, const Request& request,
                       int /*number*/) noexcept override {
    const std::lock_guard lock(mutex_);
    // Responses that mean "not yet" do not count toward max_attempts.
    name_ = polls_next_ ? "poll " + std::to_string(++polls_)
                        : "attempt " + std::to_string(++attempts_) + of_how_many(request);
    began_ = Clock::now();
    next_tick_ = began_ + kTick;
    awaits_response_ = true;
    changed_.notify_one();
    show_status("");
  }

  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    const std::lock_guard lock(mutex_);
    if (attempt.race == Race::Lost) return;
    awaits_response_ = false;
    // The retry loop does not count this failure either.
    if (attempt.rule == "stale connection") --attempts_;
    polls_next_ = attempt.retried && attempt.cls == Class::Pending;
    if (!attempt.retried) return show_status("");
    auto line = name_ + ": " + attempt_text(attempt) + ", waiting " +
                duration_text(attempt.wait.value_or(Duration{}));
    if (attempt.server_delay)
      line += " (server asked " + duration_text(*attempt.server_delay) + ")";
    show_status(line + "…");
  }

  void call_ended(const Call& /*call*/, const Outcome& /*outcome*/) noexcept override {
    const std::lock_guard lock(mutex_);
    awaits_response_ = false;
    show_status("");
  }

  std::function<void(const Progress&)> on_progress(bool with_bar) override {
    const auto bar = with_bar ? std::make_shared<ProgressBar>() : nullptr;
    return [this, bar](const Progress& now) {
      const std::lock_guard lock(mutex_);
      next_tick_ = Clock::now() + kTick;
      const bool has_response = now.received > 0;
      if (has_response && awaits_response_) show_status("");  // removes "no response after …"
      if (has_response) awaits_response_ = false;
      if (bar) bar->update(now);
    };
  }

 private:
  static constexpr Clock::duration kTick = 1s;

  void count_from_start() {
    const std::lock_guard lock(mutex_);
    attempts_ = polls_ = 0;
    polls_next_ = false;
  }

  [[nodiscard]] std::string of_how_many(const Request& request) const {
    if (!request.parsed_url()) return {};
    const auto& most = policy_for(policies_, request).policy->max_attempts;
    return most ? " of " + std::to_string(*most) : std::string();
  }

  // Runs in the thread. Draws the line when nothing has happened for a second.
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    // Waits for the start of an attempt. The result is false when `stop` ends the thread.
    while (changed_.wait(lock, stop, [this] { return awaits_response_; })) {
      changed_.wait_until(lock, stop, next_tick_, [this] { return !awaits_response_; });
      const auto now = Clock::now();
      if (!awaits_response_ || now < next_tick_) continue;
      const auto seconds = std::chrono::floor<std::chrono::seconds>(now - began_).count();
      show_status(name_ + ": no response after " + std::to_string(seconds) + " s…");
      next_tick_ += kTick;
    }
  }

  PolicySet policies_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string name_;  // of the attempt: "attempt 2 of 5", or "poll 7"
  int attempts_ = 0;  // of the request, without polls
  int polls_ = 0;
  bool polls_next_ = false;  // the next attempt is a poll
  bool awaits_response_ = false;
  Clock::time_point began_;  // of the attempt
  Clock::time_point next_tick_;
  std::jthread ticker_;  // last, because it uses the other members
};

// ManyCalls counts the calls of a run with -Z and their bytes. It is thread-safe, because several
// threads call it.
class ManyCalls final : public StatusLine {
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

  std::function<void(const Progress&)> on_progress(bool /*with_bar*/) override {
    return [this, before = std::uint64_t{0}](const Progress& now) mutable {
      const auto moved = now.sent + now.received;
      const auto more = moved > before ? moved - before : 0;  // a new exchange begins at 0
      before = moved;
      if (more == 0) return;
      const std::lock_guard lock(mutex_);
      bytes_ += more;
      if (Clock::now() - drawn_ >= kInterval) draw();
    };
  }

 private:
  static constexpr Clock::duration kInterval = 100ms;

  template <class Change>
  void change(Change apply) {
    const std::lock_guard lock(mutex_);
    apply();
    draw();
  }

  void draw() {
    drawn_ = Clock::now();
    if (done_ == calls_) return show_status("");
    auto line = bytes_ > 0 ? byte_text(static_cast<double>(bytes_)) + ", " : std::string();
    line += std::to_string(done_) + " of " + std::to_string(calls_) + " done, " +
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
  std::uint64_t bytes_ = 0;  // of bodies, in all attempts
  Clock::time_point drawn_;
};

}  // namespace

bool shows_status_line(const SendOptions& options) {
  const bool asked = options.progress && !options.silent && !options.trace && !options.verbose &&
                     !options.log_json;
  return asked && ::isatty(STDERR_FILENO) == 1;
}

std::shared_ptr<StatusLine> status_line(const SendOptions& options, const PolicySet& policies) {
  if (options.parallel) return std::make_shared<ManyCalls>(options.urls.size());
  return std::make_shared<OneCall>(policies);
}

}  // namespace httpretry::cli
