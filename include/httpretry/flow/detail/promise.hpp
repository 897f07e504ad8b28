// The promise type of Task, as the compiler requires it.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/result.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace httpretry {

template <class T>
class Task;

namespace detail {

// Throws std::logic_error on a thread that drives a loop.
HTTPRETRY_API void check_may_block(const char* function);

// Returns an exception of a middleware as an Error that names the middleware.
HTTPRETRY_API Error internal_error(std::string_view thrower, const std::exception_ptr& thrown);

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

class PromiseBase {
 public:
  // The awaiter and the end of the coroutine race if they are on different threads: whichever comes
  // second resumes the awaiter. In this way, any number of consecutive tasks can complete without
  // suspending and without a deeper stack, which symmetric transfer cannot do on g++ 12 at -O0.
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

  // Must be called before `arrives_first`.
  void set_awaiter(std::coroutine_handle<> awaiter) noexcept { awaiter_ = awaiter; }
  // Called by the awaiter after it has started the coroutine. Returns false if the coroutine has
  // already ended and will not resume the awaiter.
  [[nodiscard]] bool arrives_first() noexcept {
    return !one_arrived_.exchange(true, std::memory_order_acq_rel);
  }
  [[nodiscard]] bool was_awaited() const noexcept { return static_cast<bool>(awaiter_); }
  // Sets the name that an exception is attributed to. Only the first call has an effect, because a
  // middleware may return the task of the next one.
  void set_thrower(std::string_view name) noexcept {
    if (thrower_.empty()) thrower_ = name;
  }

 protected:
  std::exception_ptr thrown_;
  std::string_view thrower_;  // if empty, exceptions reach the awaiter unchanged

 private:
  std::coroutine_handle<> awaiter_;
  std::atomic<bool> one_arrived_ = false;
};

// Stores the result of a coroutine: its value or its exception.
template <class T>
class PromiseOf : public PromiseBase {
 public:
  template <class U>
  requires std::constructible_from<T, U&&>
  void return_value(U&& value) { value_.emplace(std::forward<U>(value)); }
  // Moves the value out.
  T take() {
    if (thrown_) [[unlikely]]
      return take_thrown();
    return *std::move(value_);
  }

 private:
  [[gnu::noinline]] T take_thrown() {
    if constexpr (kIsResult<T>) {
      if (!thrower_.empty()) return internal_error(thrower_, thrown_);
    }
    std::rethrow_exception(thrown_);
  }

  std::optional<T> value_;
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

// Detached is a coroutine without an awaiter. It runs until its first suspension when called, and
// frees itself at its end. No exception may leave it.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

}  // namespace detail
}  // namespace httpretry
