// What `start` and a client's calls are made of.
#pragma once

#include <httpretry/flow/scheduler.hpp>

#include <coroutine>
#include <utility>

namespace httpretry::detail {

// A coroutine that nobody awaits, made on one thread to run on a scheduler. Making it and posting
// it may throw; then none of it has run.
class PostedCoroutine {
 public:
  struct promise_type : Detached::promise_type {
    PostedCoroutine get_return_object() noexcept {
      return PostedCoroutine(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
  };

  // clang 14 moves what a coroutine returns.
  PostedCoroutine(PostedCoroutine&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  PostedCoroutine& operator=(PostedCoroutine&&) = delete;
  ~PostedCoroutine() {
    if (handle_) handle_.destroy();
  }
  // From then on it owns itself.
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
