// Prepared: a coroutine that nobody awaits, made on one thread to run on a scheduler. To make it
// and to post it may fail, with an exception; then nothing of it has run.
#pragma once

#include "run_queue.hpp"

#include <coroutine>
#include <exception>
#include <utility>

namespace httpretry {

class Prepared {
 public:
  struct promise_type {
    static void* operator new(std::size_t size) { return detail::allocate_frame(size); }
    static void operator delete(void* frame, std::size_t size) noexcept {
      detail::free_frame(frame, size);
    }
    Prepared get_return_object() noexcept {
      return Prepared(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };

  Prepared(Prepared&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Prepared& operator=(Prepared&&) = delete;
  ~Prepared() {
    if (handle_) handle_.destroy();
  }

  // From then on it is its own. `own`: the same scheduler, where no other thread drives it; then it
  // needs no mail.
  void post_to(Scheduler& scheduler, RunQueue* own = nullptr) {
    if (own != nullptr) {
      own->ready(handle_);
    } else {
      scheduler.post(handle_);
    }
    handle_ = nullptr;
  }

 private:
  explicit Prepared(std::coroutine_handle<> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<> handle_;
};

}  // namespace httpretry
