// What the compiler asks of Task: its promise, and the memory of its frames.
#pragma once

#include <httpretry/http/result.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace httpretry {

class Middleware;
template <class T>
class Task;

namespace detail {

// Frames come from free lists of the thread, one for each size in steps of 16 bytes: a call through
// a chain of middlewares makes one frame for each, of the same few sizes every time.
// malloc gives multiples of 16 bytes, of which it keeps 8 itself.
inline constexpr std::size_t kFrameStep = 16;
inline constexpr std::size_t kOwnOfMalloc = 8;
inline constexpr std::size_t kFrameLists = 128;  // frames of up to 2040 bytes: larger ones are rare
HTTPRETRY_API void* allocate_from(std::size_t list);
HTTPRETRY_API void free_to(std::size_t list, void* frame) noexcept;

constexpr std::size_t frame_list(std::size_t size) {
  return (size + kOwnOfMalloc - 1) / kFrameStep;
}
// Inlined: the compiler knows the size of a frame, so to find its list costs no instruction.
inline void* allocate_frame(std::size_t size) {
  const auto list = frame_list(size);
  return list < kFrameLists ? allocate_from(list) : ::operator new(size);
}
inline void free_frame(void* frame, std::size_t size) noexcept {
  const auto list = frame_list(size);
  return list < kFrameLists ? free_to(list, frame) : ::operator delete(frame);
}

struct PooledFrame {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }
};

// Throws std::logic_error on a thread that drives a loop.
HTTPRETRY_API void check_may_block(const char* function);

// What a middleware threw, as an Error that names the middleware.
HTTPRETRY_API Error internal_error(std::string_view thrower, const std::exception_ptr& thrown);

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

class PromiseBase : public PooledFrame {
 public:
  // The awaiter and the end of the coroutine race when they are on different threads: whichever
  // comes second resumes the awaiter. So any number of tasks in a row can complete without
  // suspending and without a deeper stack, which symmetric transfer on g++ 12 at -O0 cannot do.
  struct FinalAwaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[gnu::noinline]] void await_suspend(std::coroutine_handle<Promise> done) const noexcept {
      PromiseBase& promise = done.promise();
      if (!promise.arrives_first()) promise.awaiter_.resume();
    }
    void await_resume() const noexcept {}
  };

  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { thrown_ = std::current_exception(); }

  // Before `arrives_first`.
  void set_awaiter(std::coroutine_handle<> awaiter) noexcept { awaiter_ = awaiter; }
  // For the awaiter, once the coroutine was started. False if it is done already: then nobody will
  // resume the awaiter.
  [[nodiscard]] bool arrives_first() noexcept {
    return !one_arrived_.exchange(true, std::memory_order_acq_rel);
  }
  [[nodiscard]] bool was_awaited() const noexcept { return static_cast<bool>(awaiter_); }
  // The first one counts: a middleware may return the task of the next one.
  void set_thrower(std::string_view name) noexcept {
    if (thrower_size_ != 0) return;
    thrower_ = name.data();
    thrower_size_ = static_cast<std::uint32_t>(name.size());
  }
  void set_thrower(const Middleware& middleware) noexcept {
    if (thrower_size_ != 0) return;
    middleware_ = &middleware;
    thrower_size_ = kMiddleware;
  }

 protected:
  // Empty: no thrower was set.
  [[nodiscard]] HTTPRETRY_API std::string_view thrower() const noexcept;

  // Packed, because a call that waits holds a frame of each middleware above it.
  std::exception_ptr thrown_;
  bool has_value_ = false;  // of PromiseOf

 private:
  std::atomic<bool> one_arrived_ = false;
  // A name of that size, or a middleware.
  static constexpr std::uint32_t kMiddleware = UINT32_MAX;
  std::uint32_t thrower_size_ = 0;
  union {
    const char* thrower_ = nullptr;
    const Middleware* middleware_;
  };
  std::coroutine_handle<> awaiter_;
};

// The end of a coroutine: its value, or what it threw.
template <class T>
class PromiseOf : public PromiseBase {
 public:
  PromiseOf() noexcept {}
  ~PromiseOf() {
    if (has_value_) std::destroy_at(&value_);
  }
  PromiseOf(const PromiseOf&) = delete;
  PromiseOf& operator=(const PromiseOf&) = delete;

  template <class U>
  requires std::constructible_from<T, U&&>
  void return_value(U&& value) {
    std::construct_at(&value_, std::forward<U>(value));
    has_value_ = true;
  }
  // The value is moved out, and gone.
  T take() {
    if (thrown_) [[unlikely]]
      return take_thrown();
    T value = std::move(value_);
    std::destroy_at(&value_);
    has_value_ = false;
    return value;
  }

 private:
  [[gnu::noinline]] T take_thrown() {
    if constexpr (kIsResult<T>) {
      if (!thrower().empty()) return internal_error(thrower(), thrown_);
    }
    std::rethrow_exception(thrown_);
  }

  union {
    T value_;  // if has_value_
  };
};

template <>
class PromiseOf<void> : public PromiseBase {
 public:
  void return_void() const noexcept {}
  void take() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }
};

template <class T>
class Promise final : public PromiseOf<T> {
 public:
  Task<T> get_return_object() noexcept {
    return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
  }
};

// A coroutine that nobody awaits: it runs until its first suspension when called, and frees itself
// at its end. No exception may leave it.
struct Detached {
  struct promise_type : PooledFrame {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

// A task that was started for a thread that waits for its end.
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

// Starts the task. Shared, because the thread may give up before it is done.
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
}  // namespace httpretry
