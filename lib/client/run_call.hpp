// One call, from its first line to its outcome.
#pragma once

#include "loops.hpp"

#include "lib/flow/either_stop.hpp"

#include <httpretry/client/client.hpp>

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

 private:
  explicit PostedCoroutine(std::coroutine_handle<> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<> handle_;
};

// Where a call runs.
struct RunsOn {
  Scheduler* scheduler = nullptr;  // null: nowhere
  Transport* transport = nullptr;
  BackgroundLoop::CallCount count{};   // null where no background loop runs it
  std::unique_ptr<EitherStop> stop{};  // of the call's token, where that is not the user's
};

// The coroutines run on the scheduler's thread. `options` and what `completion` is must live until
// `completion` is told.
PostedCoroutine run_call(std::shared_ptr<const ClientOptions> client, RunsOn where, Request request,
                         CallOptions options, Completion& completion);
PostedCoroutine run_work(RunsOn where, std::shared_ptr<Work> work);

}  // namespace httpretry::detail
