// Task<T>: a coroutine that computes a T. Lazy: it starts when it is awaited. When it is done, its
// awaiter continues, on the thread that this happens on.
//
//   Task<std::string> title(Client& client) {
//     Outcome outcome = co_await client.co_send(Request::get(url));
//     co_return outcome ? outcome->body : "none";
//   }
//   std::string text = sync_wait(title(client));
//
// A Task has one owner and is awaited once: a second time aborts with a message. Destroying one
// that was not awaited, or that is suspended, destroys its frame and everything in it.
//
// g++ 12 miscompiles some ordinary coroutine code. A statement with co_await must contain, at any
// depth, no lambda, no braces that form an aggregate, no `?:` of class type and no initializer
// list; and the condition of an if, while or switch must contain no co_await. Later versions, and
// clang, are not affected; `coroutines.query`, installed with the library, finds these forms with
// clang-query.
#pragma once

#include <httpretry/flow/detail/promise.hpp>

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace httpretry {

namespace detail {
struct TaskAccess;
template <class T>
using ValueOrNothing = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
}  // namespace detail

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  class Awaiter {
   public:
    explicit Awaiter(Handle handle) noexcept : handle_(handle) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> awaiter) const {
      const Handle handle = handle_;
      if (!handle || handle.promise().was_awaited()) [[unlikely]] {
        detail::misuse("a Task was awaited twice, or after it was moved from");
      }
      handle.promise().set_awaiter(awaiter);
      handle.resume();
      return handle.promise().arrives_first();
    }
    T await_resume() const { return handle_.promise().take(); }

   protected:
    Handle handle_;
  };
  Awaiter operator co_await() const& noexcept { return Awaiter(handle_); }

  // Makes an exception in this coroutine an Errc::Internal that names the thrower. `name` must
  // outlive the task. Has an effect only on a task of a Result.
  void set_thrower(std::string_view name) noexcept { handle_.promise().set_thrower(name); }

 private:
  friend promise_type;
  friend struct detail::TaskAccess;
  // Awaits a task that was started before.
  class Join final : public Awaiter {
   public:
    using Awaiter::Awaiter;
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> awaiter) const {
      this->handle_.promise().set_awaiter(awaiter);
      return this->handle_.promise().arrives_first();
    }
  };
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

namespace detail {

// For `when_all`: starts a task before it is awaited.
struct TaskAccess {
  template <class T>
  static void start(const Task<T>& task) {
    task.handle_.resume();
  }
  template <class T>
  static auto join(const Task<T>& task) {
    return typename Task<T>::Join(task.handle_);
  }
};

}  // namespace detail

// Runs a task and blocks this thread until it is done: the way from ordinary code into coroutines.
// On a thread that drives a loop (in a callback, in a middleware) it would wait for itself: there
// it throws std::logic_error, and the task is not started.
template <class T>
T sync_wait(Task<T> task) {
  detail::check_may_block("sync_wait()");
  const auto running = std::make_shared<detail::Running<T>>();
  detail::run_into(running, std::move(task));
  running->done().wait(false, std::memory_order_acquire);
  return running->take();
}

// Several tasks at once:
//
//   std::vector<Task<Outcome>> calls;
//   for (const auto& url : urls) calls.push_back(client.co_send(Request::get(url)));
//   std::vector<Outcome> outcomes = co_await when_all(std::move(calls));
//
// Starts all of them when it is awaited, and continues when the last one is done, on the thread
// that this happens on. Gives their values in the order of the tasks. If tasks throw, it rethrows
// the exception of the first of them in that order, when all are done. Destroying it destroys them.
//
// ClientOptions::max_in_flight limits how many calls are in flight at a time.
template <class T>
requires(!std::is_void_v<T>) Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  std::vector<T> values;
  values.reserve(tasks.size());
  for (const auto& task : tasks) detail::TaskAccess::start(task);

  std::exception_ptr thrown;
  for (const auto& task : tasks) {
    try {
      const auto join = detail::TaskAccess::join(task);
      T value = co_await join;
      values.push_back(std::move(value));
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
  co_return values;
}

inline Task<> when_all(std::vector<Task<>> tasks) {
  for (const auto& task : tasks) detail::TaskAccess::start(task);
  std::exception_ptr thrown;
  for (const auto& task : tasks) {
    try {
      const auto join = detail::TaskAccess::join(task);
      co_await join;
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

namespace detail {

// The value of a task is kept in `value`; a Task<> leaves it empty.
template <class T>
Task<> keep(Task<T> task, std::optional<ValueOrNothing<T>>& value) {
  if constexpr (std::is_void_v<T>) {
    co_await task;
    value.emplace();
  } else {
    T made = co_await task;
    value.emplace(std::move(made));
  }
}

}  // namespace detail

// The same for a few tasks of different types:
//
//   auto [user, orders] = co_await when_all(client.co_send(one), client.co_send(other));
//
// What a Task<> gives is a std::monostate.
template <class... T>
requires(sizeof...(T) >
         0) Task<std::tuple<detail::ValueOrNothing<T>...>> when_all(Task<T>... tasks) {
  std::tuple<std::optional<detail::ValueOrNothing<T>>...> values;
  std::vector<Task<>> kept;
  kept.reserve(sizeof...(T));
  std::apply([&](auto&... value) { (kept.push_back(detail::keep(std::move(tasks), value)), ...); },
             values);
  auto all = when_all(std::move(kept));
  co_await all;
  co_return std::apply(
      [](auto&... value) { return std::tuple<detail::ValueOrNothing<T>...>(*std::move(value)...); },
      values);
}

}  // namespace httpretry
