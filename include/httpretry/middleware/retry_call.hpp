// retry_call: retries a function that is not an HTTP request, by the same policies.
//
// The function returns the result of one attempt, and the policy decides whether there is another:
// by attempts, elapsed time, backoff, polls and budget. What a policy says about statuses and
// headers has no meaning here.
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
// A client with the middleware `retry` that is used inside such a function multiplies the attempts
// of the two. The first time that a blocking retry_call sees this, it logs a warning.
#pragma once

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
  std::string reason;  // for people: Attempt::rule
  // How long the service asks to wait. The policy's `server_delay` says how far that counts.
  std::optional<Duration> delay;
};

// The result of one attempt. A failure may have a value too: the last one is returned.
template <class T = void>
struct AttemptResult : AttemptResultBase {
  using AttemptResultBase::AttemptResultBase;
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  static AttemptResult success() requires(std::is_void_v<T>) {
    return AttemptResult(Class::Success);
  }
  static AttemptResult success(Value result) requires(!std::is_void_v<T>) {
    AttemptResult done(Class::Success);
    done.value.emplace(std::move(result));
    return done;
  }
  // A failure that may pass.
  static AttemptResult transient(std::string why = {}) {
    return AttemptResult(Class::Transient, std::move(why));
  }
  // The service asks for fewer calls, and has done nothing.
  static AttemptResult throttle(std::string why = {}) {
    return AttemptResult(Class::Throttle, std::move(why));
  }
  // Another attempt would give the same result.
  static AttemptResult permanent(std::string why = {}) {
    return AttemptResult(Class::Permanent, std::move(why));
  }
  // Not done yet: ask again. It is for the function to know where: `pending.url_from` of the policy
  // does not count here. Polls are counted apart, and wait by the policy's `pending.backoff`.
  static AttemptResult pending(std::string why = {}) {
    return AttemptResult(Class::Pending, std::move(why));
  }
  AttemptResult after(Duration wait) && {
    delay = wait;
    return std::move(*this);
  }

  std::optional<Value> value;
};

// The result of the last attempt, and the history of the call. The attempts in it have no status,
// `sent` and `wire_sends`; their `rule` is the reason, or else the word for the class. Where stop
// was requested before the first attempt, or the send rate left no time for it, `last` is
// permanent, "canceled", and the history has only a stop_reason.
template <class T = void>
struct [[nodiscard]] RetryResult {
  RetryResult() : last(Class::Permanent, "canceled") {}
  explicit operator bool() const { return last.cls == Class::Success; }

  AttemptResult<T> last;
  History history;
};

// The argument of the function, if it takes one. Nobody interrupts an attempt: it should end by
// itself at `deadline`, and when stop is requested.
struct HTTPRETRY_API AttemptInfo {
  AttemptInfo(int count, Time end, std::stop_token token);

  int number;  // from 1, polls included
  Time deadline;
  std::stop_token stop;
};

class SharedBudget;

// A budget that several calls share, on any threads (budget.hpp says what for).
class HTTPRETRY_API CallBudget {
 public:
  // Throws std::invalid_argument for a policy that `check` refuses.
  explicit CallBudget(const BudgetPolicy& policy);
  CallBudget(const CallBudget&) = delete;
  CallBudget& operator=(const CallBudget&) = delete;
  // In whole tokens; empty for a policy of kind None.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  friend class RetryCallLoop;
  std::shared_ptr<SharedBudget> shared_;
};

// The clocks of a blocking retry_call, and how it waits. This one is the system's; tests derive
// their own.
class HTTPRETRY_API BlockingClock {
 public:
  virtual ~BlockingClock();
  [[nodiscard]] virtual Time now() const;
  [[nodiscard]] virtual WallTime wall_now() const;
  // True when it is `when`, false as soon as stop is requested.
  virtual bool wait_until(Time when, const std::stop_token& stop) const;
};

struct HTTPRETRY_API RetryCallOptions {
  RetryCallOptions() = default;

  // Ends a wait at once; the result of the last attempt is returned.
  std::stop_token stop;
  // For the whole call: no wait is begun that would end later.
  Duration timeout = kForever;
  // false: doing it twice may do harm. Then only a throttle is retried, because the service did
  // nothing, unless the policy says `repeat: always`.
  bool repeatable = true;
  // Without one, retries are not limited by a budget: the policy's `budget` is only what a
  // CallBudget is made from. It also keeps the send rate of an `adaptive` policy.
  std::shared_ptr<CallBudget> budget;
  // Uniform in [0, 1). By default a generator of the library.
  std::function<double()> random;
  // By default the system's. co_retry_call uses its scheduler instead.
  std::shared_ptr<const BlockingClock> clock;
};

// Calls `f`, an `AttemptResult<T>()` or `AttemptResult<T>(const AttemptInfo&)`, on this thread
// until the policy ends the call. An exception from `f` ends it too, and is passed on.
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

// The same for an `f` that returns a Task<AttemptResult<T>>, in a coroutine on `scheduler`; no
// thread is blocked while it waits. `scheduler`, and what `f` refers to, must outlive the task.
// Destroying the task ends the call.
template <class F>
Task<RetryResult<detail::ValueOf<F>>> co_retry_call(RetryPolicy policy, Scheduler& scheduler, F f,
                                                    RetryCallOptions options = RetryCallOptions()) {
  RetryCallLoop loop(policy, options, scheduler.now());
  RetryResult<detail::ValueOf<F>> result;
  while (!loop.ended()) {
    if (const auto until = loop.wait_until()) {
      const bool complete = co_await scheduler.sleep_until(*until, options.stop);
      loop.end_wait(complete, scheduler.now());
    } else {
      const AttemptInfo attempt = loop.attempt();
      auto task = detail::call(f, attempt);
      result.last = co_await task;
      loop.end_attempt(result.last, scheduler.now(), scheduler.wall_now());
    }
  }
  result.history = loop.finish(scheduler.now());
  co_return result;
}

}  // namespace httpretry
