// What the templates retry_call and co_retry_call need; nothing here is for users.
#pragma once

#include <httpretry/flow/task.hpp>
#include <httpretry/http/attempt.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

namespace httpretry {

struct AttemptInfo;
struct AttemptResultBase;
struct RetryCallOptions;
struct RetryPolicy;
template <class T>
struct AttemptResult;

// The retry loop of one call; its user does the waiting.
class HTTPRETRY_API RetryCallLoop {
 public:
  // Both must outlive the loop. Throws std::invalid_argument for a policy that `check` refuses.
  RetryCallLoop(const RetryPolicy& policy, const RetryCallOptions& options, Time now);
  // Gives back what was taken of the budget for an attempt that is not made.
  ~RetryCallLoop();
  RetryCallLoop(const RetryCallLoop&) = delete;
  RetryCallLoop& operator=(const RetryCallLoop&) = delete;

  // What comes next: nothing, a wait, or else an attempt.
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::optional<Time> wait_until() const;
  [[nodiscard]] AttemptInfo attempt() const;
  // After the wait; `complete` is false where stop ended it.
  void end_wait(bool complete, Time now);
  // After the attempt.
  void end_attempt(const AttemptResultBase& result, Time now, WallTime wall_now);
  [[nodiscard]] History finish(Time now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {

// Blocks until the policy ends the call. `attempt` returns the result of the user's function.
HTTPRETRY_API History
retry_call(const RetryPolicy& policy, const RetryCallOptions& options,
           const std::function<const AttemptResultBase&(const AttemptInfo&)>& attempt);

template <class F>
decltype(auto) call(F& f, const AttemptInfo& attempt) {
  if constexpr (std::is_invocable_v<F&, const AttemptInfo&>) {
    return f(attempt);
  } else {
    return f();
  }
}

template <class T>
struct ValueOfResult {
  static_assert(!sizeof(T), "the function must return an AttemptResult<T> (or a Task of one)");
};
template <class T>
struct ValueOfResult<AttemptResult<T>> {
  using Type = T;
};
template <class T>
struct ValueOfResult<Task<AttemptResult<T>>> {
  using Type = T;
};
template <class F>
using ValueOf = typename ValueOfResult<decltype(call(std::declval<F&>(),
                                                     std::declval<const AttemptInfo&>()))>::Type;

}  // namespace detail
}  // namespace httpretry
