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
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

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
    bool await_suspend(std::coroutine_handle<> awaiter) const {
      if (!handle_ || handle_.promise().was_awaited()) [[unlikely]] {
        detail::misuse("a Task was awaited twice, or after it was moved from");
      }
      handle_.resume();
      return handle_.promise().resume_at_end(awaiter);
    }
    T await_resume() const { return handle_.promise().take(); }

   protected:
    Handle handle_;
  };
  Awaiter operator co_await() const& noexcept { return Awaiter(handle_); }

  // From now on an exception in this coroutine is an Errc::Internal that names the thrower. `name`
  // must outlive the task. Has an effect only on a task of a Result.
  void set_thrower(std::string_view name) noexcept { handle_.promise().set_thrower(name); }

 private:
  friend promise_type;
  template <class U>
  friend Task<std::vector<U>> when_all(std::vector<Task<U>> tasks);
  // Awaits a task that was started before.
  class Join final : public Awaiter {
   public:
    using Awaiter::Awaiter;
    bool await_suspend(std::coroutine_handle<> awaiter) const {
      return this->handle_.promise().resume_at_end(awaiter);
    }
  };
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

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
Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  std::vector<T> values;
  values.reserve(tasks.size());
  for (const auto& task : tasks) task.handle_.resume();

  std::exception_ptr thrown;
  for (const auto& task : tasks) {
    try {
      const typename Task<T>::Join join(task.handle_);
      T value = co_await join;
      values.push_back(std::move(value));
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
  co_return values;
}

}  // namespace httpretry
