// retry_call retries a function that is not an HTTP request, with the same policies.
//
// The function returns the result of one attempt, and the policy decides whether there is another:
// by attempts, elapsed time, backoff, polls and budget. The parts of a policy about statuses and
// headers have no effect here.
//
// Call a function up to n times, with a pause:
//
//   RetryPolicy policy;
//   policy.max_attempts = 5;
//   policy.backoff = Backoff::constant(std::chrono::milliseconds(200));
//   auto done = retry_call(policy, [&] {
//     return lock_file() ? AttemptResult<>::success() : AttemptResult<>::transient("locked");
//   });
//   if (!done) std::cerr << done.history.attempts.size() << " attempts: " << done.last.reason;
//
// Poll a long operation until it is done:
//
//   RetryPolicy policy;
//   policy.max_elapsed_time = std::chrono::minutes(10);
//   policy.server_delay.max = std::chrono::minutes(5);  // a longer time_left ends the call
//   policy.retry_on.pending.emplace().backoff.initial = std::chrono::seconds(2);
//   auto video = retry_call(policy, [&]() -> AttemptResult<Url> {
//     const Status status = ask();
//     if (status.failed) return AttemptResult<Url>::permanent(status.why);
//     if (status.running) return AttemptResult<Url>::pending().after(status.time_left);
//     return AttemptResult<Url>::success(status.url);
//   });
//
// If such a function uses a client with the middleware `retry`, the attempts of both multiply. The
// first time that a blocking retry_call detects this, it logs a warning.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/scheduler.hpp>
#include <httpretry/http/attempt.hpp>
#include <httpretry/middleware/detail/retry_call.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace httpretry {

// The result of one attempt, without its value.
struct HTTPRETRY_API AttemptResultBase {
  AttemptResultBase() = default;
  explicit AttemptResultBase(Class outcome, std::string why = {});

  Class cls = Class::Success;
  std::string reason;  // for people; becomes Attempt::rule
  // The wait that the service asks for, subject to the policy's `server_delay`.
  std::optional<Duration> delay;
};

// The result of one attempt. A failure may have a value as well; the value of the last attempt is
// returned.
template <class T = void>
struct AttemptResult : AttemptResultBase {
  using AttemptResultBase::AttemptResultBase;
  // The value of an attempt; std::monostate if attempts have none.
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  // Return a success, with its value if attempts have one.
  static AttemptResult success() requires(std::is_void_v<T>) {
    return AttemptResult(Class::Success);
  }
  static AttemptResult success(Value result) requires(!std::is_void_v<T>) {
    AttemptResult done(Class::Success);
    done.value.emplace(std::move(result));
    return done;
  }
  // A temporary failure.
  static AttemptResult transient(std::string why = {}) {
    return AttemptResult(Class::Transient, std::move(why));
  }
  // The service asks for fewer calls and has not executed this one.
  static AttemptResult throttle(std::string why = {}) {
    return AttemptResult(Class::Throttle, std::move(why));
  }
  // Another attempt would give the same result.
  static AttemptResult permanent(std::string why = {}) {
    return AttemptResult(Class::Permanent, std::move(why));
  }
  // Not done yet; the function is to be called again. The policy's `pending.url_from` has no
  // effect, so the function must know where to poll. Polls are counted separately, and wait
  // according to the policy's `pending.backoff`.
  static AttemptResult pending(std::string why = {}) {
    return AttemptResult(Class::Pending, std::move(why));
  }
  // Sets the wait that the service asks for: AttemptResult<>::throttle().after(2s).
  AttemptResult after(Duration wait) && {
    delay = wait;
    return std::move(*this);
  }

  std::optional<Value> value;
};

// The result of the last attempt, and the history of the call. The attempts in it have no status,
// `sent` or `wire_sends`; their `rule` is the reason or, if that is empty, the word for the class.
// If there was no attempt, because stop was requested before it or because the send rate left no
// time for it, `last` is permanent with the reason "canceled", and the history has only a
// stop_reason.
template <class T = void>
struct [[nodiscard]] RetryResult {
  RetryResult() : last(Class::Permanent, "canceled") {}
  explicit operator bool() const { return last.cls == Class::Success; }

  AttemptResult<T> last;
  History history;
};

class BlockingClock;

// The argument of the function, if it takes one. The library cannot interrupt an attempt: the
// function should end by itself at `deadline`, and when stop is requested.
struct HTTPRETRY_API AttemptInfo {
  AttemptInfo(int count, Time end, std::stop_token token);

  int number;            // counted from 1, including polls
  Time deadline;         // when this attempt should end
  std::stop_token stop;  // a stop of the whole call
  // The limit of the whole call: its timeout or max_elapsed_time, whichever is over first.
  Time call_deadline = kNever;
  // The scheduler of a co_retry_call, or nullptr.
  Scheduler* scheduler = nullptr;
  // The clock of a blocking retry_call, or nullptr.
  const BlockingClock* clock = nullptr;
};

class SharedBudget;

// CallBudget is a budget that several calls share, on any threads (budget.hpp explains what budgets
// are for).
class HTTPRETRY_API CallBudget {
 public:
  // Throws std::invalid_argument if `check` rejects the policy.
  explicit CallBudget(const BudgetPolicy& policy);
  CallBudget(const CallBudget&) = delete;
  CallBudget& operator=(const CallBudget&) = delete;
  // Returns the whole tokens that are left, or nullopt if the policy is of kind None.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  friend class RetryCallLoop;
  std::shared_ptr<SharedBudget> shared_;
};

// BlockingClock provides the clocks of a blocking retry_call, and its waits. This class uses those
// of the system. Tests derive their own.
class HTTPRETRY_API BlockingClock {
 public:
  virtual ~BlockingClock();
  // Return the time of the steady clock, and of the system clock.
  [[nodiscard]] virtual Time now() const;
  [[nodiscard]] virtual WallTime wall_now() const;
  // Blocks until `when` and returns true, or returns false as soon as stop is requested.
  virtual bool wait_until(Time when, const std::stop_token& stop) const;
};

// The options of `retry_call` and `co_retry_call`.
struct HTTPRETRY_API RetryCallOptions {
  RetryCallOptions() = default;

  // Ends a wait at once. The call then returns the result of the last attempt.
  std::stop_token stop;
  // The limit of the whole call: a wait that would end later is not begun.
  Duration timeout = kForever;
  // False if executing the function twice may do harm. Then only a throttle is retried, because the
  // service executed nothing, unless the policy has `repeat: always`.
  bool repeatable = true;
  // Limits the retries, and holds the send rate of an `adaptive` policy. Without it, no budget
  // applies: the policy's `budget` is only the description from which a CallBudget is made.
  std::shared_ptr<CallBudget> budget;
  // Returns random numbers, uniform in [0, 1). By default the library's generator is used.
  std::function<double()> random;
  // By default the system's clock. co_retry_call uses its scheduler instead.
  std::shared_ptr<const BlockingClock> clock;
};

// Calls `f`, an `AttemptResult<T>()` or `AttemptResult<T>(const AttemptInfo&)`, on this thread
// until the policy ends the call. An exception from `f` ends the call and is passed on.
template <class F>
RetryResult<detail::ValueOf<F>> retry_call(const RetryPolicy& policy, F&& f,
                                           const RetryCallOptions& options = RetryCallOptions()) {
  RetryResult<detail::ValueOf<F>> result;
  result.history = detail::retry_call(policy, options,
                                      [&](const AttemptInfo& attempt) -> const AttemptResultBase& {
                                        return result.last = detail::call(f, attempt);
                                      });
  return result;
}

// The same as retry_call for an `f` that returns a Task<AttemptResult<T>>: calls and awaits it
// until the policy ends the call. It runs as a coroutine on `scheduler`, so a wait blocks no
// thread. `scheduler`, and everything that `f` refers to, must outlive the task. Destroying the
// task ends the call.
template <class F>
Task<RetryResult<detail::ValueOf<F>>> co_retry_call(RetryPolicy policy, Scheduler& scheduler, F f,
                                                    RetryCallOptions options = RetryCallOptions()) {
  RetryCallLoop loop(policy, options, scheduler.now());  // decides about attempts and waits
  RetryResult<detail::ValueOf<F>> result;
  while (!loop.ended()) {
    if (const auto until = loop.wait_until()) {  // nullopt: the next step is an attempt
      const bool complete = co_await scheduler.sleep_until(*until, options.stop);
      loop.end_wait(complete, scheduler.now());  // a stop, which cuts the wait short, ends the call
    } else {
      AttemptInfo attempt = loop.attempt();
      attempt.scheduler = &scheduler;
      auto task = detail::call(f, attempt);
      result.last = co_await task;
      loop.end_attempt(result.last, scheduler.now(), scheduler.wall_now());
    }
  }
  result.history = loop.finish(scheduler.now());
  co_return result;
}

}  // namespace httpretry
