// Scheduler: where a call runs, and its clocks. A call stays on one Scheduler from beginning to
// end, driven by one thread at a time: middlewares need no locks for what belongs to the call.
//
// In a program it is an event loop of the Client; in tests it is a ManualScheduler, and nothing
// really waits.
#pragma once

#include <httpretry/flow/task.hpp>
#include <httpretry/http/time.hpp>

#include <atomic>
#include <coroutine>
#include <stop_token>

namespace httpretry {

class RunQueue;

class HTTPRETRY_API Scheduler {
 public:
  virtual ~Scheduler();

  // Returns the time when the current turn of the loop began, or when an exchange last ended in it.
  // Any thread may call `now` and `wall_now` of a client's loop and of an EventLoop, since a
  // middleware may be resumed on the thread of another loop.
  [[nodiscard]] virtual Time now() const = 0;
  [[nodiscard]] virtual WallTime wall_now() const = 0;

  // Resumes the coroutine on this scheduler, soon. Any thread may call it.
  virtual void post(std::coroutine_handle<> handle) = 0;

  // True when `when` has come, never earlier; false as soon as stop is requested. A wait is an
  // entry in a queue: it holds no thread.
  virtual Task<bool> sleep_until(Time when, std::stop_token stop) = 0;

  // Runs what is on this scheduler, on the calling thread, until `done`.
  virtual void run_until(const std::atomic<bool>& done) = 0;

 private:
  friend class RunQueue;
  // Where the library's own schedulers keep their waits; nullptr for any other.
  [[nodiscard]] virtual const RunQueue* queue() const { return nullptr; }
};

}  // namespace httpretry
