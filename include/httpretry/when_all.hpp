// when_all: several tasks at once.
//
//   std::vector<Task<Outcome>> calls;
//   for (const auto& url : urls) calls.push_back(client.co_send(Request::get(url)));
//   std::vector<Outcome> outcomes = co_await when_all(std::move(calls));
//
// How many are in flight at a time is the client's to limit: ClientOptions::max_in_flight.
#pragma once

#include <httpretry/task.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace httpretry {

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
