// Finds calls that retry inside of other calls that retry: their attempts multiply.
#pragma once

#include <utility>

namespace httpretry {

inline thread_local bool in_retry_call = false;

// While one lives, this thread runs the function of a blocking retry_call. A function of
// co_retry_call is not noticed, since its thread also serves other calls while it waits.
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

// Logs a warning, once in a program.
void warn_of_nested_retry();

}  // namespace httpretry
