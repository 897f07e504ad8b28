#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/detail/promise.hpp>

#include <atomic>
#include <coroutine>
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

// Task<T> is a coroutine that computes a T. It is lazy: it starts when it is awaited. When it ends,
// its awaiter continues on the thread on which it ended.
//
//   Task<std::string> title(Client& client) {
//     Outcome outcome = co_await client.co_send(Request::get(url));
//     co_return outcome ? outcome->body : "none";
//   }
//   std::string text = sync_wait(title(client));
//
// A Task has one owner and may be awaited only once; a second time aborts the program with a
// message. Destroying a Task that was not awaited, or that is suspended, destroys its frame and
// everything in it.
//
// g++ 12 miscompiles some ordinary coroutine code. With g++ 12, a statement with co_await must not
// contain, at any depth, a lambda, braces that form an aggregate, a `?:` of class type, or an
// initializer list. The condition of an if, while or switch must not contain co_await. Later
// versions of g++, and clang, are not affected. `coroutines.query`, which is installed with the
// library, finds these forms with clang-query.
template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  // The handle of the coroutine, for awaiters.
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // Starts the task, and resumes the awaiting coroutine at its end. `co_await` uses it.
  class Awaiter {
   public:
    explicit Awaiter(Handle handle) noexcept : handle_(handle) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    // Returns whether `awaiter` suspends. It does not if the task has ended by then: of the awaiter
    // and the end of the task, whichever comes second continues the awaiter.
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

   private:
    Handle handle_;
  };
  Awaiter operator co_await() const& noexcept { return Awaiter(handle_); }

  // Converts an exception in this coroutine to an Errc::Internal that names the thrower. `name`
  // must outlive the task. Has an effect only on a task of a Result.
  void set_thrower(std::string_view name) noexcept { handle_.promise().set_thrower(name); }

 private:
  friend promise_type;
  friend struct detail::TaskAccess;
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

namespace detail {

// Awaits the end of a task that has already been started, and leaves its value in it.
class Join {
 public:
  explicit Join(PromiseBase& promise) noexcept : promise_(promise) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> awaiter) const noexcept {
    promise_.set_awaiter(awaiter);
    return promise_.arrives_first();
  }
  void await_resume() const noexcept {}

 private:
  PromiseBase& promise_;
};

struct TaskAccess {
  template <class T>
  static void start(const Task<T>& task) {
    task.handle_.resume();
  }
  template <class T>
  static Join join(const Task<T>& task) {
    return Join(task.handle_.promise());
  }
  // Called after the end of the task. Moves the value out, or rethrows the task's exception.
  template <class T>
  static T take(const Task<T>& task) {
    return task.handle_.promise().take();
  }
};

// Starts all tasks and continues when the last one has ended.
template <class T>
Task<> run_all(const std::vector<Task<T>>& tasks) {
  for (const auto& task : tasks) TaskAccess::start(task);
  for (const auto& task : tasks) {
    const auto join = TaskAccess::join(task);
    co_await join;
  }
}

// A started task whose end a blocked thread waits for.
template <class T>
class Running {
 public:
  [[nodiscard]] const std::atomic<bool>& done() const { return done_; }
  T take() { return TaskAccess::take(*task_); }

 private:
  template <class U>
  friend Detached run_into(std::shared_ptr<Running<U>> running, Task<U> task);
  std::optional<Task<T>> task_;
  std::atomic<bool> done_ = false;
};

// Starts the task. `running` is shared because the thread may stop waiting before the task has
// ended.
template <class T>
Detached run_into(std::shared_ptr<Running<T>> running, Task<T> task) {
  running->task_.emplace(std::move(task));
  TaskAccess::start(*running->task_);
  const auto join = TaskAccess::join(*running->task_);
  co_await join;
  running->done_.store(true, std::memory_order_release);
  running->done_.notify_one();
}

}  // namespace detail

// Runs a task and blocks this thread until it has ended. Use this to call coroutines from ordinary
// code. A thread that drives a loop (in a callback, in a middleware) would wait for itself, so on
// such a thread sync_wait throws std::logic_error and does not start the task.
template <class T>
T sync_wait(Task<T> task) {
  detail::check_may_block("sync_wait()");
  const auto running = std::make_shared<detail::Running<T>>();
  detail::run_into(running, std::move(task));
  running->done().wait(false, std::memory_order_acquire);
  return running->take();
}

// Runs several tasks at once:
//
//   std::vector<Task<Outcome>> calls;
//   for (const auto& url : urls) calls.push_back(client.co_send(Request::get(url)));
//   std::vector<Outcome> outcomes = co_await when_all(std::move(calls));
//
// Starts all tasks when it is awaited, and continues when the last one has ended, on the thread on
// which that one ended. Returns the values in the order of the tasks. If tasks throw, waits for all
// of them and rethrows the exception of the first one in that order. Destroying the when_all
// destroys the tasks.
//
// ClientOptions::max_in_flight limits how many calls are in flight at once.
template <class T>
requires(!std::is_void_v<T>) Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  std::vector<T> values;
  values.reserve(tasks.size());
  const auto all = detail::run_all(tasks);
  co_await all;
  for (const auto& task : tasks) values.push_back(detail::TaskAccess::take(task));
  co_return values;
}

// The same for tasks without a value.
inline Task<> when_all(std::vector<Task<>> tasks) {
  const auto all = detail::run_all(tasks);
  co_await all;
  for (const auto& task : tasks) detail::TaskAccess::take(task);
}

namespace detail {

// Stores the value of the task in `value`. For a Task<>, that is a std::monostate.
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

// The same for a fixed number of tasks of different types:
//
//   auto [user, orders] = co_await when_all(client.co_send(one), client.co_send(other));
//
// The value of a Task<> is a std::monostate.
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
