// One call, from its first line to its outcome; and UnderWay, which counts the calls of a client.
#pragma once

#include "loops.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/flow/detail/posted.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>

namespace httpretry::detail {

// How many calls, and how much work of `spawn`, a client carries; and, once it drains, how its
// calls end.
class UnderWay {
 public:
  // Counts for as long as it lives.
  struct End {
    void operator()(UnderWay* all) const noexcept { all->change(1, false); }
  };
  using Ticket = std::unique_ptr<UnderWay, End>;

  // Returns an empty ticket if the client drains. `for_call` is false for work, which still begins
  // then, because a call in flight may need it.
  [[nodiscard]] Ticket begin(bool for_call) {
    const std::lock_guard lock(mutex_);
    if (for_call && drains_) return nullptr;
    ++count_;
    return Ticket(this);
  }
  // Of each call, before its user is told.
  void ended(const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    if (!drains_) return;
    const bool canceled = !outcome && outcome.error().code == Errc::Canceled;
    ++(canceled ? result_.canceled : succeeded(outcome) ? result_.succeeded : result_.failed);
  }

  // From then on no call begins.
  void drain() { change(0, true); }
  [[nodiscard]] bool drains() const {
    const std::lock_guard lock(mutex_);
    return drains_;
  }
  // Requested when the client drains and nothing is under way.
  [[nodiscard]] std::stop_token nothing_left() const { return nothing_left_.get_token(); }
  [[nodiscard]] DrainResult result() const {
    const std::lock_guard lock(mutex_);
    return result_;
  }

 private:
  void change(std::size_t fewer, bool drains) noexcept {
    std::unique_lock lock(mutex_);
    count_ -= fewer;
    drains_ = drains_ || drains;
    const bool none_left = drains_ && count_ == 0;
    lock.unlock();  // what waits for this may go on at once
    if (none_left) nothing_left_.request_stop();
  }

  std::stop_source nothing_left_;
  mutable std::mutex mutex_;  // guards the rest
  bool drains_ = false;
  std::size_t count_ = 0;
  DrainResult result_;
};

// Awaited to continue on the scheduler when nothing is left, even if the scheduler has been closed.
class UntilNothingLeft {
 public:
  UntilNothingLeft(const UnderWay& all, Scheduler& scheduler)
      : token_(all.nothing_left()), scheduler_(scheduler) {}
  [[nodiscard]] bool await_ready() const { return token_.stop_requested(); }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> self) {
    on_end_.emplace(token_, [this, self] { scheduler_.post(self); });
  }
  void await_resume() { on_end_.reset(); }

 private:
  std::stop_token token_;
  Scheduler& scheduler_;
  std::optional<std::stop_callback<std::function<void()>>> on_end_;
};

// Where a call runs.
struct RunsOn {
  Scheduler* scheduler = nullptr;
  Transport* transport = nullptr;
  bool watches_end = false;           // Call::State::watches_end
  BackgroundLoop::CallCount count{};  // of nothing where no background loop runs it
  // With the stop of the call's token, where that is not the user's.
  std::unique_ptr<EitherStop> either_stop{};
  UnderWay::Ticket ticket{};
};

// What a client keeps for its calls.
struct ForCalls {
  const ClientOptions& options;
  CallsInCommon common;
};

// The coroutines run on the scheduler's thread. `options` and what `completion` is must live until
// `completion` is told.
PostedCoroutine run_call(std::shared_ptr<const ForCalls> client, RunsOn where, Request request,
                         CallOptions options, Completion& completion);
PostedCoroutine run_work(std::shared_ptr<const ForCalls> client, RunsOn where,
                         std::shared_ptr<Work> work);

}  // namespace httpretry::detail
