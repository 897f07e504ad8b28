// guarded adds the guards of a policy to a function that is not an HTTP request: its pauses, rate,
// circuit breaker and limit of concurrent calls, and for a coroutine its attempt timeout. With
// retry_call around it, a function has what the requests of a client have:
//
//   auto guards = std::make_shared<CallGuards>(policy, "the database");  // one for all calls
//   auto rows = retry_call(policy, guarded(guards, [&] { return query(text); }));
//
// If all calls use the same function object, it can own the guards:
//
//   auto ping = guarded(policy, [&] { return database.ping(); });
//   auto alive = retry_call(policy, ping);
//
// Each attempt waits until the guards let it begin; the wait does not count toward
// attempt_timeout. A coroutine is requested to stop at its deadline; if it then ends without
// success, the attempt has timed out. A blocking function should end by itself (AttemptInfo).
//
// If the wait would end after the call's timeout, or the circuit is open, or the
// queue is full, the function is not called. The attempt is then permanent. Its reason is the guard
// ("the circuit of the database is open (5 failures in a row)"), and `delay` is the time until the
// guard may let an attempt begin, if that is known.
//
// The circuit breaker counts `transient` as a failure, and `throttle` only if throttle_fails is
// set. A `throttle` with a delay makes all attempts under these guards wait. An attempt that ends
// with an exception, or after stop was requested, counts neither as a success nor as a failure.
//
// httpretry.hpp does not include this header.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/when_any.hpp>
#include <httpretry/middleware/retry_call.hpp>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace httpretry {

class SharedState;

// CallGuards holds the guards of a policy for functions, and their states. Any number of calls, on
// any threads, may share it.
class HTTPRETRY_API CallGuards {
 public:
  // `name` says in messages what is guarded. With `state`, the states are kept there, under that
  // name: CallGuards of the same name and the same numbers share them, in this process or, with
  // redis_state, in several. Throws std::invalid_argument if `check` rejects the policy.
  explicit CallGuards(const RetryPolicy& policy, std::string name = "the function",
                      std::shared_ptr<SharedState> state = nullptr);
  ~CallGuards();
  CallGuards(const CallGuards&) = delete;
  CallGuards& operator=(const CallGuards&) = delete;

 private:
  friend class GuardedAttempt;
  struct State;
  const std::unique_ptr<State> state_;
};

// One attempt that passes the guards. Used by `guarded`.
class HTTPRETRY_API GuardedAttempt {
 public:
  // `guards` must outlive the attempt.
  GuardedAttempt(CallGuards& guards, AttemptInfo attempt);
  ~GuardedAttempt();
  GuardedAttempt(const GuardedAttempt&) = delete;
  GuardedAttempt& operator=(const GuardedAttempt&) = delete;

  // Wait until the guards let the attempt begin, and return true. Return false if it must not be
  // made; `result` then says why. `enter` blocks.
  bool enter();
  Task<bool> co_enter();
  // Returns the attempt, with a deadline that does not count the wait.
  [[nodiscard]] const AttemptInfo& info() const;
  // Returns what has happened instead of a call of the function.
  [[nodiscard]] const AttemptResultBase& result() const;
  // Reports the result of the function to the guards.
  void end(const AttemptResultBase& result);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

namespace detail {

template <class T>
AttemptResult<T> not_made(const AttemptResultBase& why) {
  AttemptResult<T> result(why.cls, why.reason);
  result.delay = why.delay;
  return result;
}

template <class F, class T>
Task<> call_into(F& f, AttemptInfo attempt, AttemptResult<T>& result) {
  auto task = call(f, attempt);
  result = co_await task;
}

// Makes one attempt: waits until the guards let it begin, calls the coroutine function, and reports
// its result to the guards. Requests the function's stop at the attempt's deadline, or when the
// whole call is stopped. If the function ends without success after the deadline, the attempt has
// timed out. If the guards refuse, returns why, and does not call the function.
template <class F, class T = ValueOf<F>>
Task<AttemptResult<T>> call_guarded(std::shared_ptr<CallGuards> guards, F& f, AttemptInfo attempt) {
  GuardedAttempt guarded(*guards, std::move(attempt));
  const bool may_begin = co_await guarded.co_enter();
  if (!may_begin) co_return not_made<T>(guarded.result());
  AttemptInfo info = guarded.info();
  std::stop_source attempt_stop;  // also requested by `race`, so that both of its tasks end
  const std::stop_callback on_call_stop(info.stop, [&] { attempt_stop.request_stop(); });
  info.stop = attempt_stop.get_token();
  AttemptResult<T> result;  // set by call_into, which has ended when `race` returns
  const auto race = when_any(attempt_stop, call_into(f, info, result),
                             info.scheduler->sleep_until(info.deadline, info.stop));
  const auto first = co_await race;
  // The second task won, and its value is true: it slept until the deadline.
  const bool deadline_came = first.index() == 1 && std::get<1>(first);
  if (deadline_came && result.cls != Class::Success) {
    result = AttemptResult<T>(Class::Transport, "timed out");
  }
  guarded.end(result);
  co_return result;
}

}  // namespace detail

// A function that passes guards before each call. `retry_call` and `co_retry_call` call it.
template <class F>
class Guarded {
 public:
  Guarded(std::shared_ptr<CallGuards> guards, F f) : guards_(std::move(guards)), f_(std::move(f)) {}

  auto operator()(const AttemptInfo& attempt) {
    using Made = decltype(detail::call(f_, attempt));
    if constexpr (std::is_base_of_v<AttemptResultBase, Made>) {
      GuardedAttempt guarded(*guards_, attempt);
      if (!guarded.enter()) return detail::not_made<detail::ValueOf<F>>(guarded.result());
      Made result = detail::call(f_, guarded.info());
      guarded.end(result);
      return result;
    } else {
      return detail::call_guarded(guards_, f_, attempt);
    }
  }

 private:
  std::shared_ptr<CallGuards> guards_;
  F f_;
};

// Returns `f` behind guards. `f` is a function for `retry_call`, or a coroutine function for
// `co_retry_call`.
template <class F>
[[nodiscard]] Guarded<F> guarded(std::shared_ptr<CallGuards> guards, F f) {
  return Guarded<F>(std::move(guards), std::move(f));
}
template <class F>
[[nodiscard]] Guarded<F> guarded(const RetryPolicy& policy, F f) {
  return Guarded<F>(std::make_shared<CallGuards>(policy), std::move(f));
}

}  // namespace httpretry
