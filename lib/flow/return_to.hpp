// Awaited to be on a scheduler's own thread again, after code that may have gone elsewhere.
#pragma once

#include "hop.hpp"
#include "run_queue.hpp"

namespace httpretry {

class ReturnTo : public Hop {
 public:
  explicit ReturnTo(Scheduler& scheduler)
      : Hop(scheduler), here_(static_cast<Scheduler*>(RunQueue::current()) == &scheduler) {}
  [[nodiscard]] bool await_ready() const noexcept { return here_; }

 private:
  bool here_;
};

}  // namespace httpretry
