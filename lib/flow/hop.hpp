// Awaited to go on, on a scheduler.
#pragma once

#include "run_queue.hpp"

namespace httpretry {

class Hop {
 public:
  explicit Hop(Scheduler& scheduler) : scheduler_(scheduler) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) const { scheduler_.post(self); }
  void await_resume() const noexcept {}

 private:
  Scheduler& scheduler_;
};

}  // namespace httpretry
