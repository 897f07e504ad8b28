// Detects retrying calls inside other retrying calls, whose attempts multiply.
#pragma once

#include <utility>

namespace httpretry {

inline thread_local bool in_retry_call = false;

// Marks this thread, while it lives, as running the function of a blocking retry_call. The function
// of a co_retry_call is not marked, because its thread also serves other calls while it waits.
class InsideRetry {
 public:
  InsideRetry() = default;
  ~InsideRetry() { in_retry_call = before_; }
  InsideRetry(const InsideRetry&) = delete;
  InsideRetry& operator=(const InsideRetry&) = delete;

 private:
  const bool before_ = std::exchange(in_retry_call, true);
};

[[nodiscard]] inline bool inside_retry() { return in_retry_call; }

// Logs a warning, once per process.
void warn_of_nested_retry();

}  // namespace httpretry
