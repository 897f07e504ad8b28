// UnderWay: how many calls, and how much work of `spawn`, a client carries; and, once it drains,
// how its calls end.
#pragma once

#include <httpretry/client/client.hpp>

#include <memory>
#include <mutex>
#include <stop_token>

namespace httpretry::detail {

class UnderWay {
 public:
  // Counts for as long as it lives.
  struct End {
    void operator()(UnderWay* all) const noexcept { all->change(1, false); }
  };
  using Ticket = std::unique_ptr<UnderWay, End>;

  // Empty: the client drains.
  [[nodiscard]] Ticket begin_call() {
    const std::lock_guard lock(mutex_);
    if (drains_) return nullptr;
    ++count_;
    return Ticket(this);
  }
  // Also while it drains: a call that is under way may need the work.
  [[nodiscard]] Ticket begin_work() {
    const std::lock_guard lock(mutex_);
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
    on_end_.emplace(token_, Post{scheduler_, self});
  }
  void await_resume() { on_end_.reset(); }

 private:
  struct Post {
    Scheduler& scheduler;
    std::coroutine_handle<> handle;
    void operator()() const { scheduler.post(handle); }
  };
  std::stop_token token_;
  Scheduler& scheduler_;
  std::optional<std::stop_callback<Post>> on_end_;
};

}  // namespace httpretry::detail
