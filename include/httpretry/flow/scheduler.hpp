// Scheduler: where a call runs, and its clocks. A call lives on one Scheduler from its first line
// to its last, driven by one thread at a time: middlewares need no locks for what belongs to the
// call.
//
// In a program it is a loop of the Client; in tests it is a ManualScheduler, and nothing waits.
#pragma once

#include <httpretry/flow/task.hpp>
#include <httpretry/http/time.hpp>

#include <atomic>
#include <coroutine>
#include <stop_token>

namespace httpretry {

class HTTPRETRY_API Scheduler {
 public:
  virtual ~Scheduler();

  // Stands still while one coroutine after another runs, and moves between their turns.
  [[nodiscard]] virtual Time now() const = 0;
  [[nodiscard]] virtual WallTime wall_now() const = 0;

  // Resumes the coroutine on this scheduler, soon. The only member that any thread may call.
  virtual void post(std::coroutine_handle<> handle) = 0;

  // True when `when` has come, never earlier; false as soon as stop is requested. A wait is an
  // entry in a heap: it holds no thread.
  virtual Task<bool> sleep_until(Time when, std::stop_token stop) = 0;

  // Drives what is on this scheduler, on the calling thread, until `done`.
  virtual void run_until(const std::atomic<bool>& done) = 0;
};

}  // namespace httpretry
