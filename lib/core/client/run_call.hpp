// run_call: the coroutine of one call, from its start to its outcome. CallsInFlight counts the
// calls of a client.
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

// Counts the calls and the spawned work of a client that are in flight and, while the client
// drains, how its calls end. Thread-safe.
class CallsInFlight {
 public:
  // A call or a piece of work counts as long as its ticket lives.
  struct End {
    void operator()(CallsInFlight* all) const noexcept { all->change(1, false); }
  };
  using Ticket = std::unique_ptr<CallsInFlight, End>;

  // Returns a ticket, or an empty one if the client drains. `for_call` is false for spawned work,
  // which may begin during a drain, because a call in flight may need it.
  [[nodiscard]] Ticket begin(bool for_call) {
    const std::lock_guard lock(mutex_);
    if (for_call && drains_) return nullptr;
    ++count_;
    return Ticket(this);
  }
  // Counts the outcome of a call. Must be called for each call before its completion.
  void count_outcome(const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    if (!drains_) return;
    const bool canceled = !outcome && outcome.error().code == Errc::Canceled;
    ++(canceled ? result_.canceled : succeeded(outcome) ? result_.succeeded : result_.failed);
  }

  // Lets no further call begin.
  void drain() { change(0, true); }
  [[nodiscard]] bool is_draining() const {
    const std::lock_guard lock(mutex_);
    return drains_;
  }
  // Returns a token that is requested when the client drains and nothing is in flight.
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
    lock.unlock();  // request_stop() may run the code that waits for it
    if (none_left) nothing_left_.request_stop();
  }

  std::stop_source nothing_left_;
  mutable std::mutex mutex_;  // guards the rest
  bool drains_ = false;
  std::size_t count_ = 0;
  DrainResult result_;
};

// An awaitable that resumes on the scheduler once nothing is in flight, even if the scheduler has
// been closed.
class UntilNothingLeft {
 public:
  UntilNothingLeft(const CallsInFlight& all, Scheduler& scheduler)
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

// The loop and transport of a call, and the objects that it keeps alive while it runs.
struct RunsOn {
  Scheduler* scheduler = nullptr;
  Transport* transport = nullptr;
  bool watches_end = false;           // Call::State::watches_end
  BackgroundLoop::CallCount count{};  // empty unless a background loop runs the call
  // Combines the user's stop token with the client's, if the call watches both.
  std::unique_ptr<EitherStop> either_stop{};
  CallsInFlight::Ticket ticket{};
};

// The part of a client that its calls use.
struct ForCalls {
  const ClientOptions& options;
  CallsInCommon common;
};

// Run a call, or spawned work, on the thread that drives the scheduler. `completion` must live
// until its `complete` is called, and so must everything that `options` refers to.
PostedCoroutine run_call(std::shared_ptr<const ForCalls> client, RunsOn where, Request request,
                         CallOptions options, Completion& completion);
PostedCoroutine run_work(std::shared_ptr<const ForCalls> client, RunsOn where,
                         std::shared_ptr<Work> work);

}  // namespace httpretry::detail
