// ResumeOn: awaited to continue on a scheduler.
#pragma once

#include "lib/core/flow/detail/run_queue.hpp"

namespace httpretry {

class ResumeOn {
 public:
  explicit ResumeOn(Scheduler& scheduler) : target_(scheduler) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> self) const { target_.post(self); }
  void await_resume() const noexcept {}

 private:
  Scheduler& target_;
};

// Returns to the scheduler after a user's code, which may have continued on another thread. Does
// nothing if it did not.
class ReturnTo : public ResumeOn {
 public:
  explicit ReturnTo(Scheduler& scheduler)
      : ResumeOn(scheduler), here_(static_cast<Scheduler*>(RunQueue::current()) == &scheduler) {}
  [[nodiscard]] bool await_ready() const noexcept { return here_; }

 private:
  bool here_;
};

}  // namespace httpretry
