#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/task.hpp>
#include <httpretry/http/time.hpp>

#include <atomic>
#include <coroutine>
#include <stop_token>

namespace httpretry {

namespace detail {
class RunQueue;
}

// Scheduler is where a call runs, and has its clocks. A call stays on one Scheduler from beginning
// to end, driven by one thread at a time. Middlewares therefore need no locks for data that belongs
// to the call.
//
// In a program the Scheduler is an event loop of the Client. In tests it is a ManualScheduler, and
// no time really passes.
class HTTPRETRY_API Scheduler {
 public:
  virtual ~Scheduler();

  // Returns the time when the current turn of the loop began, or when an exchange last ended in it.
  // Any thread may call `now` and `wall_now` of a client's loop and of an EventLoop, because a
  // middleware may be resumed on the thread of another loop.
  [[nodiscard]] virtual Time now() const = 0;
  [[nodiscard]] virtual WallTime wall_now() const = 0;

  // Resumes the coroutine on this scheduler as soon as possible. May be called on any thread.
  virtual void post(std::coroutine_handle<> handle) = 0;

  // Waits until `when` and returns true, never earlier. Returns false as soon as stop is requested.
  // A wait is only an entry in a queue and blocks no thread.
  virtual Task<bool> sleep_until(Time when, std::stop_token stop) = 0;

  // Runs the coroutines of this scheduler on the calling thread until `done` is true.
  virtual void run_until(const std::atomic<bool>& done) = 0;

 private:
  friend class EventLoop;
  friend class detail::RunQueue;
  // The queue in which the library's own schedulers keep their waits; nullptr for any other
  // scheduler.
  [[nodiscard]] virtual const detail::RunQueue* queue() const { return nullptr; }
  [[nodiscard]] virtual bool is_event_loop() const { return false; }
};

}  // namespace httpretry
