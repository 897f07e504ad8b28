// retry_call: the same policies for a function that is no HTTP request.
//
// The function says what came of one try; the policy decides about the next, by the same `decide`
// that requests are retried by: attempts, elapsed time, backoff, polls, budget. Of a policy, what
// speaks of statuses and headers has no meaning here.
//
// Do something up to n times, with a pause:
//
//   RetryPolicy policy;
//   policy.max_attempts = 5;
//   policy.backoff.kind = Backoff::Kind::Constant;
//   policy.backoff.initial = std::chrono::milliseconds(200);
//   auto done = retry_call(policy, [&] {
//     return lock_file() ? Tried<>::success() : Tried<>::transient("locked");
//   });
//   if (!done) std::cerr << done.history.attempts.size() << " tries: " << done.last.reason;
//
// Poll a long operation until it is done:
//
//   RetryPolicy policy;
//   policy.max_elapsed_time = std::chrono::minutes(10);
//   policy.server_delay.max = std::chrono::minutes(5);  // a longer time_left ends it
//   policy.retry_on.pending.emplace().backoff.initial = std::chrono::seconds(2);
//   auto video = retry_call(policy, [&]() -> Tried<Url> {
//     const Status status = ask();
//     if (status.failed) return Tried<Url>::permanent(status.why);
//     if (status.running) return Tried<Url>::pending().after(status.time_left);
//     return Tried<Url>::success(status.url);
//   });
//
// A client with a `retry` stage that is used inside such a function multiplies the attempts of the
// two; once in a program, a warning in the log says so.
#pragma once

#include <httpretry/flow/inside_retry.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/http/attempt.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace httpretry {

struct SharedBudget;
namespace detail {
class RetryLoop;
}

// What one try came to, but for its value.
struct HTTPRETRY_API TriedFacts {
  TriedFacts() = default;
  explicit TriedFacts(Class outcome, std::string why = {});

  Class cls = Class::Success;
  std::string reason;  // for people: Attempt::rule
  // What the service asked for. The policy's `server_delay` says how far that is listened to.
  std::optional<Duration> delay;
};

// What one try came to. A try that failed may have a value too: the last one is handed out.
template <class T = void>
struct Tried : TriedFacts {
  using TriedFacts::TriedFacts;
  static Tried success(T result) {
    Tried tried(Class::Success);
    tried.value.emplace(std::move(result));
    return tried;
  }
  // A failure that passes.
  static Tried transient(std::string why = {}) { return Tried(Class::Transient, std::move(why)); }
  // The service asks for less, and has done nothing.
  static Tried throttle(std::string why = {}) { return Tried(Class::Throttle, std::move(why)); }
  // Trying again would give the same.
  static Tried permanent(std::string why = {}) { return Tried(Class::Permanent, std::move(why)); }
  // Not yet: ask again. Counted apart from attempts, with the policy's `pending.backoff`.
  static Tried pending(std::string why = {}) { return Tried(Class::Pending, std::move(why)); }
  Tried after(Duration wait) && {
    delay = wait;
    return std::move(*this);
  }

  std::optional<T> value;
};

template <>
struct Tried<void> : TriedFacts {
  using TriedFacts::TriedFacts;
  static Tried success() { return Tried(Class::Success); }
  static Tried transient(std::string why = {}) { return Tried(Class::Transient, std::move(why)); }
  static Tried throttle(std::string why = {}) { return Tried(Class::Throttle, std::move(why)); }
  static Tried permanent(std::string why = {}) { return Tried(Class::Permanent, std::move(why)); }
  static Tried pending(std::string why = {}) { return Tried(Class::Pending, std::move(why)); }
  Tried after(Duration wait) && {
    delay = wait;
    return std::move(*this);
  }
};

// The last try, and how it came to that. In the history's attempts, what is HTTP's own (status,
// sent, wire_sends) stays as it is made, and `rule` is the try's reason, or else the word for its
// class. Where stop was requested before the first, or the send rate left no time for it,
// `last` is permanent, "canceled", and the history is empty but for its stop_reason.
template <class T = void>
struct [[nodiscard]] Retried {
  Retried() : last(Class::Permanent, "canceled") {}
  explicit operator bool() const { return last.cls == Class::Success; }

  Tried<T> last;
  History history;
};

// What a function is told of the try that it makes, if it takes an argument. Nobody ends a try for
// it: it should not go on past `deadline`, and not after stop is requested.
struct HTTPRETRY_API Trying {
  Trying(int count, Time end, std::stop_token token);

  int number;  // from 1, polls included
  Time deadline;
  std::stop_token stop;
};

// A budget that several calls share, on any threads (budget.hpp says what for).
class HTTPRETRY_API CallBudget {
 public:
  explicit CallBudget(const BudgetPolicy& policy);
  CallBudget(const CallBudget&) = delete;
  CallBudget& operator=(const CallBudget&) = delete;
  // In whole tokens; empty for a policy of kind None.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  friend class detail::RetryLoop;
  std::shared_ptr<SharedBudget> shared_;
};

// The clocks of a blocking retry_call, and how it waits. This one is the system's; tests derive
// theirs.
class HTTPRETRY_API BlockingClock {
 public:
  virtual ~BlockingClock();
  [[nodiscard]] virtual Time now() const;
  [[nodiscard]] virtual WallTime wall_now() const;
  // True when `when` has come, false as soon as stop is requested.
  virtual bool wait_until(Time when, const std::stop_token& stop) const;
};

struct HTTPRETRY_API RetryCallOptions {
  RetryCallOptions() = default;

  // Ends a wait at once; the last try is handed out.
  std::stop_token stop;
  // For all of it: no wait is begun that would end later.
  Duration timeout = kForever;
  // false: doing it twice may do harm, so that only what the service refused (a throttle) is done
  // again, unless the policy says `repeat: always`.
  bool repeatable = true;
  // Where left out there is none; the policy's `budget` is what CallBudget is made from. It keeps
  // the send rate of an `adaptive` policy, too.
  std::shared_ptr<CallBudget> budget;
  // Uniform in [0, 1). Seeded from the system where left out.
  std::function<double()> random;
  // The system's where left out. co_retry_call has its scheduler instead.
  std::shared_ptr<const BlockingClock> clock;
};

namespace detail {

// What retry_call and co_retry_call have in common: everything but the waiting.
class HTTPRETRY_API RetryLoop {
 public:
  // Both must outlive the loop. Throws std::invalid_argument for a policy that `check` refuses.
  RetryLoop(const RetryPolicy& policy, const RetryCallOptions& options, Time now);
  // What was taken of the budget for a try that is not made is given back.
  ~RetryLoop();
  RetryLoop(const RetryLoop&) = delete;
  RetryLoop& operator=(const RetryLoop&) = delete;

  // Until when the budget's send rate holds the next try back. Where that is too late the call has
  // ended.
  [[nodiscard]] std::optional<Time> held_until(Time now);
  [[nodiscard]] bool ended() const;
  Trying begin(Time now);
  // Whether to try again, at `next()`.
  bool judge(const TriedFacts& tried, Time now, WallTime wall_now);
  [[nodiscard]] Time next() const;
  History finish(Time now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

HTTPRETRY_API const BlockingClock& clock_of(const RetryCallOptions& options);

template <class F>
decltype(auto) try_once(F& f, const Trying& trying) {
  const InsideRetry inside;
  if constexpr (std::is_invocable_v<F&, const Trying&>) {
    return f(trying);
  } else {
    return f();
  }
}

template <class F>
using TryOf = decltype(try_once(std::declval<F&>(), std::declval<const Trying&>()));

template <class T>
struct TriedIn {
  static_assert(!sizeof(T), "what is retried must return a Tried<T> (or a Task of one)");
  using Value = void;
};
template <class T>
struct TriedIn<Tried<T>> {
  using Value = T;
};
template <class T>
struct TriedIn<Task<Tried<T>>> {
  using Value = T;
};
template <class F>
using ValueOf = typename TriedIn<TryOf<F>>::Value;

}  // namespace detail

// Calls `f`, `Tried<T>()` or `Tried<T>(const Trying&)`, on this thread until the policy has it end.
// What `f` throws ends it too, and is thrown on.
template <class F>
Retried<detail::ValueOf<F>> retry_call(const RetryPolicy& policy, F&& f,
                                       const RetryCallOptions& options = RetryCallOptions()) {
  const auto& clock = detail::clock_of(options);
  detail::RetryLoop loop(policy, options, clock.now());
  Retried<detail::ValueOf<F>> result;
  while (!options.stop.stop_requested()) {
    if (const auto until = loop.held_until(clock.now())) {
      if (loop.ended() || !clock.wait_until(*until, options.stop)) break;
      continue;  // another call may have taken what came free
    }
    result.last = detail::try_once(f, loop.begin(clock.now()));
    if (!loop.judge(result.last, clock.now(), clock.wall_now())) break;
    if (!clock.wait_until(loop.next(), options.stop)) break;
  }
  result.history = loop.finish(clock.now());
  return result;
}

// The same where `f` gives a Task<Tried<T>>, in a coroutine on `scheduler`; the thread is free
// while it waits. `scheduler` must outlive the task, as must what `f` refers to. Destroying the
// task gives up.
template <class F>
Task<Retried<detail::ValueOf<F>>> co_retry_call(RetryPolicy policy, Scheduler& scheduler, F f,
                                                RetryCallOptions options = RetryCallOptions()) {
  detail::RetryLoop loop(policy, options, scheduler.now());
  Retried<detail::ValueOf<F>> result;
  while (!options.stop.stop_requested()) {
    if (const auto until = loop.held_until(scheduler.now())) {
      if (loop.ended()) break;
      const bool held = co_await scheduler.sleep_until(*until, options.stop);
      if (!held) break;
      continue;  // another call may have taken what came free
    }
    const Trying trying = loop.begin(scheduler.now());
    {  // its frame is gone when the wait begins
      auto task = detail::try_once(f, trying);
      const detail::AwaitInside inside(task);
      result.last = co_await inside;
    }
    if (!loop.judge(result.last, scheduler.now(), scheduler.wall_now())) break;
    const bool waited = co_await scheduler.sleep_until(loop.next(), options.stop);
    if (!waited) break;
  }
  result.history = loop.finish(scheduler.now());
  co_return result;
}

}  // namespace httpretry
