// Awaited to go on, on a scheduler.
#pragma once

#include "run_queue.hpp"

namespace httpretry {

class Hop {
 public:
  explicit Hop(Scheduler& scheduler, RunQueue* own = nullptr) : scheduler_(scheduler), own_(own) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) const {
    if (own_ != nullptr) return own_->ready(self);
    scheduler_.post(self);
  }
  void await_resume() const noexcept {}

 private:
  Scheduler& scheduler_;
  RunQueue* own_;  // the same, where no other thread drives it: then it needs no mail
};

}  // namespace httpretry
