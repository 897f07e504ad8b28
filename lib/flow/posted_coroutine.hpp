// A coroutine that nobody awaits, made on one thread to run on a scheduler. Making it and posting
// it may throw; then none of it has run.
#pragma once

#include "run_queue.hpp"

#include <coroutine>
#include <exception>
#include <utility>

namespace httpretry {

class PostedCoroutine {
 public:
  struct promise_type : detail::PooledFrame {
    PostedCoroutine get_return_object() noexcept {
      return PostedCoroutine(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };

  PostedCoroutine(PostedCoroutine&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  PostedCoroutine& operator=(PostedCoroutine&&) = delete;
  ~PostedCoroutine() {
    if (handle_) handle_.destroy();
  }

  // From then on it owns itself. `own`: the same scheduler, if this thread will drive it; then no
  // lock is needed.
  void post_to(Scheduler& scheduler, RunQueue* own = nullptr) {
    if (own != nullptr) {
      own->ready(handle_);
    } else {
      scheduler.post(handle_);
    }
    handle_ = nullptr;
  }

 private:
  explicit PostedCoroutine(std::coroutine_handle<> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<> handle_;
};

}  // namespace httpretry
