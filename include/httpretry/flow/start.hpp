// start: begins a task and does not wait for it. The way from ordinary code into coroutines on a
// thread that must not block, for example one that drives an EventLoop (client/event_loop.hpp).
// `sync_wait` is the way on a thread that may block.
//
//   start(fetch_all(client), [](Result<int> pages) { ... });
//   start(*loop, fetch_all(client), [](Result<int> pages) { ... });
#pragma once

#include <httpretry/flow/detail/posted.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/http/result.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace httpretry {

namespace detail {

// What `start` tells of a Task<T>: a task of a Result is told as it is.
template <class T>
using Told = std::conditional_t<kIsResult<T>, T, Result<T>>;

[[nodiscard]] HTTPRETRY_API Error thrown_by_task(const std::exception_ptr& thrown);

template <class T, class Done>
PostedCoroutine run_and_tell(Task<T> task, Done done) {
  std::optional<Told<T>> told;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await task;
      told.emplace();
    } else {
      T value = co_await task;
      told.emplace(std::move(value));
    }
  } catch (...) {
    told.emplace(thrown_by_task(std::current_exception()));
  }
  done(*std::move(told));
}

}  // namespace detail

// Runs the task on this thread until it first waits, and returns. At its end `done` is called once,
// on the thread that this happens on, with a Result<T> (for a Task<Result<T>>, too; Result<void>
// for a Task<>). What the task throws is an Errc::Internal. `done` must not throw; it may be a type
// that can only be moved.
template <class T, class Done>
void start(Task<T> task, Done done) {
  detail::run_and_tell(std::move(task), std::move(done)).run();
}

// The same, but all of the task up to its first wait runs on `scheduler`, soon. For any thread.
template <class T, class Done>
void start(Scheduler& scheduler, Task<T> task, Done done) {
  detail::run_and_tell(std::move(task), std::move(done)).post_to(scheduler);
}

}  // namespace httpretry
