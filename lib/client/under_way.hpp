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
    void operator()(UnderWay* all) const noexcept { all->leave(); }
  };
  using Ticket = std::unique_ptr<UnderWay, End>;

  // Empty: the client drains.
  [[nodiscard]] Ticket begin_call() { return begin(false); }
  // Also while it drains: a call that is under way may need the work.
  [[nodiscard]] Ticket begin_work() { return begin(true); }
  // Of each call, before its user is told.
  void ended(const Outcome& outcome);

  // From then on no call begins.
  void drain();
  [[nodiscard]] bool drains() const;
  // Requested when the client drains and nothing is under way.
  [[nodiscard]] std::stop_token nothing_left() const { return nothing_left_.get_token(); }
  [[nodiscard]] DrainResult result() const;

 private:
  Ticket begin(bool always);
  void leave() noexcept;

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
