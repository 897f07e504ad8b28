// The coroutine type behind `start` and the calls of a client.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/scheduler.hpp>

#include <coroutine>
#include <utility>

namespace httpretry::detail {

// PostedCoroutine is a coroutine without an awaiter, created on one thread to run on a scheduler.
// If creating or posting it throws, no part of it has run.
class PostedCoroutine {
 public:
  struct promise_type : Detached::promise_type {
    PostedCoroutine get_return_object() noexcept {
      return PostedCoroutine(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
  };

  // Needed by clang 14, which moves the object that a coroutine returns.
  PostedCoroutine(PostedCoroutine&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  PostedCoroutine& operator=(PostedCoroutine&&) = delete;
  ~PostedCoroutine() {
    if (handle_) handle_.destroy();
  }
  // Posts the coroutine. From then on it owns itself.
  void post_to(Scheduler& scheduler) {
    scheduler.post(handle_);
    handle_ = nullptr;
  }
  void run() { std::exchange(handle_, nullptr).resume(); }

 private:
  explicit PostedCoroutine(std::coroutine_handle<> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<> handle_;
};

}  // namespace httpretry::detail
