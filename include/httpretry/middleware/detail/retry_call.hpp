// The parts of retry_call and co_retry_call that are not templates. Not for users.
#pragma once

#include <httpretry/export.hpp>

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

// RetryCallLoop is the retry loop of one call. Its user makes the attempts and the waits.
class HTTPRETRY_API RetryCallLoop {
 public:
  // Both references must outlive the loop. Throws std::invalid_argument if `check` rejects the
  // policy.
  RetryCallLoop(const RetryPolicy& policy, const RetryCallOptions& options, Time now);
  // Returns to the budget what was taken for an attempt that is not made.
  ~RetryCallLoop();
  RetryCallLoop(const RetryCallLoop&) = delete;
  RetryCallLoop& operator=(const RetryCallLoop&) = delete;

  // The next step: nothing if `ended`, a wait if `wait_until` has a value, and otherwise an
  // attempt.
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::optional<Time> wait_until() const;
  [[nodiscard]] AttemptInfo attempt() const;
  // Reports the end of the wait. `complete` is false if a stop ended it.
  void end_wait(bool complete, Time now);
  // Reports the result of the attempt.
  void end_attempt(const AttemptResultBase& result, Time now, WallTime wall_now);
  [[nodiscard]] History finish(Time now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {

// Blocks until the policy ends the call. `attempt` calls the user's function and returns its
// result.
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
