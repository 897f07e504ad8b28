// Task<T>: a coroutine that computes a T. Lazy: it starts when it is awaited, and its awaiter goes
// on when it is done, on whichever thread that happens.
//
//   Task<std::string> title(Client& client) {
//     Outcome outcome = co_await client.co_send(Request::get(url));
//     co_return outcome ? outcome->body : "none";
//   }
//   std::string text = sync_wait(title(client));
//
// A Task is owned by one place and awaited once. Destroying one that was not awaited, or that is
// suspended, destroys its frame with what is in it.
//
// g++ 12 miscompiles some ordinary coroutine code. A statement with co_await in it must hold, at
// any depth, no lambda, no braces that form an aggregate, no `?:` of class type and no initializer
// list; and no co_await may stand in the condition of an if, while or switch. Later compilers, and
// clang, have no such trouble; `coroutines.query`, installed with the library, finds the forms with
// clang-query.
#pragma once

#include <httpretry/http/result.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace httpretry {

template <class T = void>
class Task;

namespace detail {

// Frames come from a free list of the thread: a call through a chain of middlewares makes one frame
// a stage, of the same few sizes each time.
HTTPRETRY_API void* allocate_frame(std::size_t size);
HTTPRETRY_API void free_frame(void* frame, std::size_t size) noexcept;

// What a middleware threw, as a value that names the middleware.
HTTPRETRY_API Error internal_error(std::string_view thrower, const std::exception_ptr& thrown);

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

class PromiseBase {
 public:
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }

  // The awaiter and the end of the coroutine race when they are on different threads: whoever comes
  // second resumes the awaiter. That also lets any number of tasks in a row complete without
  // suspending and without deepening the stack, which symmetric transfer on g++ 12 -O0 does not.
  struct FinalAwaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> done) const noexcept {
      PromiseBase& promise = done.promise();
      if (promise.met_.exchange(true, std::memory_order_acq_rel)) promise.awaiter_.resume();
    }
    void await_resume() const noexcept {}
  };

  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { thrown_ = std::current_exception(); }

  // Starts the coroutine; false where it is done already and the awaiter must go on by itself.
  bool start(std::coroutine_handle<> self, std::coroutine_handle<> awaiter) {
    awaiter_ = awaiter;
    self.resume();
    return !met_.exchange(true, std::memory_order_acq_rel);
  }
  void blame(std::string_view thrower) noexcept { thrower_ = thrower; }

 protected:
  std::coroutine_handle<> awaiter_;
  std::exception_ptr thrown_;
  std::string_view thrower_;
  std::atomic<bool> met_ = false;
};

template <class T>
class Promise final : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <class U>
  requires std::constructible_from<T, U&&>
  void return_value(U&& value) { value_.emplace(std::forward<U>(value)); }
  T take() {
    if (thrown_) {
      if constexpr (kIsResult<T>) {
        if (!thrower_.empty()) return internal_error(thrower_, thrown_);
      }
      std::rethrow_exception(thrown_);
    }
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> final : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }
};

}  // namespace detail

template <class T>
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
      return handle_.promise().start(handle_, awaiter);
    }
    T await_resume() const { return handle_.promise().take(); }

   private:
    Handle handle_;
  };
  Awaiter operator co_await() const& noexcept { return Awaiter(handle_); }

  // From now on an exception in this coroutine is an Errc::Internal that names `thrower` (text that
  // must outlive the task). For tasks of a Result; others ignore it.
  void blame(std::string_view thrower) noexcept { handle_.promise().blame(thrower); }

 private:
  friend promise_type;
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

// A coroutine that nobody awaits: it runs until its first suspension when called, and frees itself
// at its end. Nothing may leave it as an exception.
struct Detached {
  struct promise_type {
    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

// What a task that was started gives, once it is done.
template <class T>
class Running {
 public:
  [[nodiscard]] const std::atomic<bool>& done() const { return done_; }
  T take() {
    if (thrown_) std::rethrow_exception(thrown_);
    if constexpr (!std::is_void_v<T>) return *std::move(value_);
  }

 private:
  template <class U>
  friend Detached run_into(std::shared_ptr<Running<U>> running, Task<U> task);
  std::conditional_t<std::is_void_v<T>, std::optional<bool>, std::optional<T>> value_;
  std::exception_ptr thrown_;
  std::atomic<bool> done_ = false;
};

// Starts the task. Shared, because whoever waits may give up before it is done.
template <class T>
Detached run_into(std::shared_ptr<Running<T>> running, Task<T> task) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await task;
    } else {
      running->value_.emplace(co_await task);
    }
  } catch (...) {
    running->thrown_ = std::current_exception();
  }
  running->done_.store(true, std::memory_order_release);
  running->done_.notify_one();
}

}  // namespace detail

// Runs a task and blocks this thread until it is done: the way from ordinary code into coroutines.
// Not for a thread that drives a loop: what the task waits for would never come.
template <class T>
T sync_wait(Task<T> task) {
  const auto running = std::make_shared<detail::Running<T>>();
  detail::run_into(running, std::move(task));
  running->done().wait(false, std::memory_order_acquire);
  return running->take();
}

// when_all: several tasks at once.
//
//   std::vector<Task<Outcome>> calls;
//   for (const auto& url : urls) calls.push_back(client.co_send(Request::get(url)));
//   std::vector<Outcome> outcomes = co_await when_all(std::move(calls));
//
// How many are in flight at a time is the client's to limit: ClientOptions::max_in_flight.

namespace detail {

// Counts the tasks that are still running; the last one to end resumes whoever awaits them all.
class Gathering {
 public:
  // One more than there are tasks: the awaiter itself, until it has started them all.
  explicit Gathering(std::size_t tasks) : running_(tasks + 1) {}
  void await(std::coroutine_handle<> awaiter) { awaiter_ = awaiter; }
  [[nodiscard]] bool is_last() { return running_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  void ended() {
    if (is_last()) awaiter_.resume();
  }

 private:
  std::atomic<std::size_t> running_;
  std::coroutine_handle<> awaiter_;
};

// Awaits one of the tasks. Owned, unlike Detached: whoever gives up on all of them destroys it.
class Gathered {
 public:
  struct promise_type {
    struct End {
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      // The frame may be gone when this returns.
      void await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
        self.promise().gathering->ended();
      }
      void await_resume() const noexcept {}
    };
    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }
    Gathered get_return_object() noexcept {
      return Gathered(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
    [[nodiscard]] End final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }

    Gathering* gathering = nullptr;
  };

  Gathered(Gathered&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Gathered& operator=(Gathered&&) = delete;
  ~Gathered() {
    if (handle_) handle_.destroy();
  }
  void start(Gathering& gathering) {
    handle_.promise().gathering = &gathering;
    handle_.resume();
  }

 private:
  explicit Gathered(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

template <class T>
struct Gained {
  std::optional<T> value;
  std::exception_ptr thrown;
};

template <class T>
Gathered gather(Task<T> task, Gained<T>& gained) {
  try {
    gained.value.emplace(co_await task);
  } catch (...) {
    gained.thrown = std::current_exception();
  }
}

class AllOf {
 public:
  AllOf(Gathering& gathering, std::vector<Gathered>& tasks)
      : gathering_(gathering), tasks_(tasks) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] bool await_suspend(std::coroutine_handle<> awaiter) const {
    gathering_.await(awaiter);
    for (auto& task : tasks_) task.start(gathering_);
    return !gathering_.is_last();
  }
  void await_resume() const noexcept {}

 private:
  Gathering& gathering_;
  std::vector<Gathered>& tasks_;
};

}  // namespace detail

// Starts all of them where it is awaited, and goes on when the last is done, on the thread that
// this happens on. Their values, in the order of the tasks; what the first of these threw is thrown
// on, when all are done. Destroying it destroys them.
template <class T>
Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  std::vector<detail::Gained<T>> gained(tasks.size());
  std::vector<detail::Gathered> gathered;
  gathered.reserve(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    gathered.push_back(detail::gather(std::move(tasks[i]), gained[i]));
  }
  detail::Gathering gathering(tasks.size());
  const detail::AllOf all(gathering, gathered);
  co_await all;

  std::vector<T> values;
  values.reserve(gained.size());
  for (auto& each : gained) {
    if (each.thrown) std::rethrow_exception(each.thrown);
    values.push_back(*std::move(each.value));
  }
  co_return values;
}

}  // namespace httpretry
