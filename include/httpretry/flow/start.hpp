// start begins a task without waiting for it. Use it to call coroutines from ordinary code on a
// thread that must not block, for example one that drives an EventLoop (client/event_loop.hpp). On
// a thread that may block, use `sync_wait`.
//
//   start(fetch_all(client), [](Result<int> pages) { ... });
//   start(*loop, fetch_all(client), [](Result<int> pages) { ... });
#pragma once

#include <httpretry/export.hpp>

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

// The argument of `done` for a Task<T>: T if that is a Result, and otherwise Result<T>.
template <class T>
using Reported = std::conditional_t<kIsResult<T>, T, Result<T>>;

[[nodiscard]] HTTPRETRY_API Error thrown_by_task(const std::exception_ptr& thrown);

// Runs the task, and calls `done` once at its end: with the value of the task as a Result (a
// Reported<T>), or with an error if the task throws.
template <class T, class Done>
PostedCoroutine run_and_report(Task<T> task, Done done) {
  std::optional<Reported<T>> result;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await task;
      result.emplace();
    } else {
      T value = co_await task;
      result.emplace(std::move(value));
    }
  } catch (...) {
    result.emplace(thrown_by_task(std::current_exception()));
  }
  done(*std::move(result));
}

}  // namespace detail

// Runs the task on this thread until its first wait, and returns. When the task ends, `done` is
// called once, on the thread on which the task ended. The argument of `done` is a Result<T>, even
// for a Task<Result<T>>; for a Task<> it is a Result<void>. An exception from the task becomes an
// Errc::Internal. `done` must not throw, and may be a move-only type.
template <class T, class Done>
void start(Task<T> task, Done done) {
  detail::run_and_report(std::move(task), std::move(done)).run();
}

// The same, but the task starts on `scheduler`, as soon as possible. May be called on any thread.
template <class T, class Done>
void start(Scheduler& scheduler, Task<T> task, Done done) {
  detail::run_and_report(std::move(task), std::move(done)).post_to(scheduler);
}

}  // namespace httpretry
