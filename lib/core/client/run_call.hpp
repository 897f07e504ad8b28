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
  enum class Kind : std::uint8_t { Call, Work };
  struct End {
    void operator()(CallsInFlight* all) const noexcept { all->update(/*ended=*/1, false); }
  };
  // A call or a piece of work counts as in flight as long as its registration lives.
  using Registration = std::unique_ptr<CallsInFlight, End>;

  // Returns nullptr for a call that must not begin, because the client drains. Spawned work may
  // begin during a drain, because a call in flight may need it.
  [[nodiscard]] Registration register_one(Kind kind) {
    const std::lock_guard lock(mutex_);
    if (kind == Kind::Call && drains_) return nullptr;
    ++count_;
    return Registration(this);
  }
  // Counts the outcome of a call. Must be called for each call before its completion.
  void count_outcome(const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    if (!drains_) return;
    const bool canceled = !outcome && outcome.error().code == Errc::Canceled;
    ++(canceled ? result_.canceled : succeeded(outcome) ? result_.succeeded : result_.failed);
  }

  // Lets no further call begin.
  void drain() { update(/*ended=*/0, /*drain=*/true); }
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
  // Removes registrations that have ended, and begins the drain if `drain` is true.
  void update(std::size_t ended, bool drain) noexcept {
    std::unique_lock lock(mutex_);
    count_ -= ended;
    drains_ = drains_ || drain;
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
  CallsInFlight::Registration registration{};
};

// The part of a client that its calls use.
struct ForCalls {
  const ClientOptions& options;
  CallsInCommon common;
};

// Run a call, or spawned work, on the thread that drives the scheduler. `completion` must live
// until its `complete` is called, and so must everything that `options` refers to.
PostedCoroutine run_call(std::shared_ptr<const ForCalls> client, RunsOn placement, Request request,
                         CallOptions options, Completion& completion);
PostedCoroutine run_work(std::shared_ptr<const ForCalls> client, RunsOn placement,
                         std::shared_ptr<Work> work);

}  // namespace httpretry::detail
