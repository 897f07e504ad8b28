// Whether what this thread does now happens inside of an attempt that will be repeated. A call that
// retries and finds itself there says so in the log: attempts multiply.
#pragma once

#include <httpretry/flow/task.hpp>

namespace httpretry::detail {

// While one lives, this thread is inside of an attempt.
class HTTPRETRY_API InsideRetry {
 public:
  InsideRetry();
  ~InsideRetry();
  InsideRetry(const InsideRetry&) = delete;
  InsideRetry& operator=(const InsideRetry&) = delete;
};

[[nodiscard]] HTTPRETRY_API bool inside_retry();

// Through spdlog, at level warn, once in a program.
void warn_of_nested_retry();

// Awaits a task, and counts as inside of an attempt until the task suspends for the first time:
// from then on its thread is shared with others. So what an attempt does later goes unnoticed.
template <class T>
class AwaitInside {
 public:
  explicit AwaitInside(const Task<T>& task) : awaiter_(task.operator co_await()) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> awaiter) const {
    const InsideRetry inside;
    return awaiter_.await_suspend(awaiter);
  }
  T await_resume() const { return awaiter_.await_resume(); }

 private:
  typename Task<T>::Awaiter awaiter_;
};

}  // namespace httpretry::detail
