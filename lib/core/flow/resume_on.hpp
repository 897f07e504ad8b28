// ResumeOn: awaited to continue on a scheduler.
#pragma once

#include "lib/core/flow/detail/run_queue.hpp"

namespace httpretry {

// If the coroutine is destroyed before the scheduler resumes it, the library's schedulers forget
// it.
class ResumeOn {
 public:
  explicit ResumeOn(Scheduler& scheduler) : target_(scheduler) {}
  ResumeOn(const ResumeOn&) = delete;
  ResumeOn& operator=(const ResumeOn&) = delete;
  ~ResumeOn() {
    if (posted_) RunQueue::forget(target_, posted_);
  }
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> self) const {
    posted_ = self;
    target_.post(self);
  }
  void await_resume() const noexcept { posted_ = nullptr; }

 private:
  Scheduler& target_;
  mutable std::coroutine_handle<> posted_;  // set until it is resumed
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
