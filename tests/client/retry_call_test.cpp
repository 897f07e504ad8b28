#include "policies.hpp"
#include "virtual_clock.hpp"

#include <httpretry/middleware/retry_call.hpp>
#include <httpretry/retry/budget.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

struct Fixture {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::vector<Duration> tries;

  RetryCallOptions options() const {
    RetryCallOptions options;
    options.clock = clock;
    options.random = fixed_random(0.5);
    return options;
  }
  void note() { tries.push_back(clock->now().time_since_epoch()); }
};

using Times = std::vector<Duration>;

// The header's first example: something, up to n times, with a pause.
RetryPolicy times(int count, Duration pause) {
  RetryPolicy policy;
  policy.max_attempts = count;
  policy.backoff.kind = Backoff::Kind::Constant;
  policy.backoff.initial = pause;
  return policy;
}

}  // namespace

TEST_CASE("a function that fails is called n times, with a pause") {
  Fixture test;
  const auto done = retry_call(
      times(5, 2s),
      [&] {
        test.note();
        return AttemptResult<>::transient("locked");
      },
      test.options());
  CHECK_FALSE(done);
  CHECK(test.tries == Times{0s, 2s, 4s, 6s, 8s});
  CHECK(done.last.reason == "locked");
  CHECK(done.history.stop_reason == Reason::AttemptsExhausted);
  CHECK(done.history.detail == "max_attempts 5 reached");
  CHECK(done.history.elapsed == 8s);
  REQUIRE(done.history.attempts.size() == 5);
  CHECK(done.history.attempts[3].number == 4);
  CHECK(done.history.attempts[3].start == 6s);
  CHECK(done.history.attempts[3].wait == 2s);
  CHECK(done.history.attempts[3].rule == "locked");
  CHECK_FALSE(done.history.attempts[4].retried);
}

TEST_CASE("a function that succeeds is not called again, and its value comes out") {
  Fixture test;
  int calls = 0;
  const auto done = retry_call(
      steady_policy(),
      [&]() -> AttemptResult<std::string> {
        if (++calls < 3) return AttemptResult<std::string>::transient();
        return AttemptResult<std::string>::success("it");
      },
      test.options());
  REQUIRE(done);
  CHECK(done.last.value == "it");
  CHECK(calls == 3);
  CHECK(test.clock->now() == Time(3s));
  CHECK(done.history.stop_reason == Reason::Success);
  CHECK(done.history.attempts[0].rule == "transient");
}

TEST_CASE("a long operation is polled until it is done, when it says") {
  Fixture test;
  RetryPolicy policy;
  policy.max_elapsed_time = 10min;
  policy.retry_on.pending.emplace().backoff.initial = 2s;
  int polls = 0;
  const auto video = retry_call(
      policy,
      [&]() -> AttemptResult<int> {
        test.note();
        ++polls;
        if (polls == 4) return AttemptResult<int>::pending("encoding").after(30s);
        if (polls < 6) return AttemptResult<int>::pending();
        return AttemptResult<int>::success(7);
      },
      test.options());
  CHECK(video.last.value == 7);
  CHECK(test.tries == Times{0s, 2s, 4s, 6s, 36s, 38s});
  CHECK(video.history.attempts[3].server_delay == 30s);
  CHECK(video.history.attempts[3].server_delay_source == "function");
}

TEST_CASE("permanent ends at once; a throttle follows its own curve") {
  Fixture test;
  const auto never = retry_call(
      steady_policy(), [] { return AttemptResult<>::permanent("no"); }, test.options());
  CHECK(never.history.stop_reason == Reason::NotRetryable);
  CHECK(never.history.attempts.size() == 1);

  auto policy = steady_policy();
  policy.throttle_backoff = doubling(10s);
  policy.max_attempts = 2;
  (void)retry_call(
      policy, [] { return AttemptResult<>::throttle(); }, test.options());
  CHECK(test.clock->now() == Time(10s));
}

TEST_CASE("a wait that is too long, or that would end too late, is not begun") {
  Fixture test;
  const auto asked = retry_call(
      steady_policy(), [] { return AttemptResult<>::throttle().after(2min); }, test.options());
  CHECK(asked.history.stop_reason == Reason::ServerDelayTooLong);
  CHECK(asked.history.detail ==
        "function asks for 2.00 min, 1.00 min more than server_delay.max 1.00 min");
  CHECK(asked.history.retry_at == WallTime(2min));

  auto options = test.options();
  options.timeout = 2s;
  const auto late = retry_call(
      steady_policy(), [] { return AttemptResult<>::transient(); }, options);
  CHECK(late.history.stop_reason == Reason::ElapsedExhausted);
  CHECK(late.history.attempts.size() == 2);
  CHECK(test.clock->now() == Time(1s));
}

TEST_CASE("what may do harm twice is retried only where it was refused") {
  Fixture test;
  auto options = test.options();
  options.repeatable = false;
  const auto run = [&](const RetryPolicy& policy, Class cls) {
    return retry_call(
               policy, [&] { return AttemptResult<>(cls); }, options)
        .history;
  };
  CHECK(run(steady_policy(), Class::Transient).stop_reason == Reason::UnsafeToRepeat);
  CHECK(run(steady_policy(), Class::Throttle).attempts.size() == 4);
  auto always = steady_policy();
  always.repeat = Repeat::Always;
  CHECK(run(always, Class::Transient).attempts.size() == 4);
}

TEST_CASE("a function is told the number of its attempt, and its deadline") {
  Fixture test;
  auto policy = steady_policy();
  policy.attempt_timeout = 5s;
  auto options = test.options();
  options.timeout = 7s;
  std::vector<Duration> deadlines;
  const auto run = [&](const AttemptInfo& attempt) {
    CHECK(attempt.number == static_cast<int>(deadlines.size()) + 1);
    deadlines.push_back(attempt.deadline.time_since_epoch());
    return AttemptResult<>::transient();
  };
  (void)retry_call(policy, run, options);
  CHECK(deadlines == Times{5s, 6s, 7s});
}

TEST_CASE("calls share a budget, and its refusal ends a call") {
  Fixture test;
  const auto policy = thrifty_policy(25);
  auto options = test.options();
  options.budget = std::make_shared<CallBudget>(policy.budget);
  const auto fails = [] { return AttemptResult<>::transient(); };
  const auto first = retry_call(policy, fails, options);
  CHECK(first.history.stop_reason == Reason::BudgetExhausted);
  CHECK(first.history.attempts.size() == 3);
  CHECK(first.history.attempts[1].budget_left == 5);
  CHECK(retry_call(policy, fails, options).history.attempts.size() == 1);
  CHECK(retry_call(
      policy, [] { return AttemptResult<>::success(); }, options));
  CHECK(options.budget->left(Time()) == 6);
}

TEST_CASE("an adaptive policy holds attempts back at the rate that its budget keeps") {
  Fixture test;
  auto policy = times(4, 0s);
  policy.adaptive = true;
  auto options = test.options();
  options.budget = std::make_shared<CallBudget>(policy.budget);
  int tries = 0;
  const auto throttled_once = [&] {
    test.note();
    return ++tries == 1 ? AttemptResult<>::throttle() : AttemptResult<>::success();
  };
  CHECK(retry_call(policy, throttled_once, options));
  SendRate rate{Time()};  // the limiter's own arithmetic
  rate.update(Time(), true);
  CHECK(test.tries == Times{Duration::zero(), rate.acquire(Time())});
  CHECK(test.tries[1] > 0s);

  tries = 0;
  options.timeout = 1ms;
  const auto late = retry_call(policy, throttled_once, options);
  CHECK(tries == 0);
  CHECK_FALSE(late);
  CHECK(late.history.stop_reason == Reason::ElapsedExhausted);
  CHECK(late.history.detail.find("the send rate allows") == 0);
}

TEST_CASE("an exception of the function is passed on, and what was spent is lost") {
  Fixture test;
  const auto policy = thrifty_policy(100);
  auto options = test.options();
  options.budget = std::make_shared<CallBudget>(policy.budget);
  int calls = 0;
  const auto throws = [&]() -> AttemptResult<> {
    if (++calls == 2) throw std::runtime_error("no");
    return AttemptResult<>::transient();
  };
  CHECK_THROWS_WITH_AS((void)retry_call(policy, throws, options), "no", std::runtime_error);
  CHECK(options.budget->left(Time()) == 90);
}

TEST_CASE("stop before the first attempt means that there is none") {
  Fixture test;
  std::stop_source stop;
  stop.request_stop();
  auto options = test.options();
  options.stop = stop.get_token();
  const auto none = retry_call(
      steady_policy(), [&] { return test.note(), AttemptResult<>::success(); }, options);
  CHECK_FALSE(none);
  CHECK(test.tries.empty());
  CHECK(none.last.reason == "canceled");
  CHECK(none.history.stop_reason == Reason::Canceled);
}

TEST_CASE("stop ends a wait on the system's clock at once, and gives back what it was to cost") {
  const auto policy = thrifty_policy(100);
  RetryCallOptions options;
  std::stop_source stop;
  options.stop = stop.get_token();
  options.budget = std::make_shared<CallBudget>(policy.budget);
  auto patient = policy;
  patient.backoff = doubling(50s);
  std::atomic<bool> tried = false;
  std::thread other([&] {
    tried.wait(false);
    stop.request_stop();
  });
  const auto done = retry_call(
      patient,
      [&] {
        tried = true;
        tried.notify_one();
        return AttemptResult<>::transient("busy");
      },
      options);
  other.join();
  CHECK(done.history.stop_reason == Reason::Canceled);
  CHECK(done.last.reason == "busy");
  CHECK(done.history.attempts.size() == 1);
  CHECK(options.budget->left(Time()) == 100);
}

TEST_CASE("the system's clock waits, and never less than asked") {
  const auto begin = std::chrono::steady_clock::now();
  const auto done = retry_call(times(2, 5ms), [] { return AttemptResult<>::transient(); });
  CHECK(done.history.attempts.size() == 2);
  CHECK(std::chrono::steady_clock::now() - begin >= 5ms);
}

namespace {

// A function for co_retry_call that takes `took` for each try and succeeds at the third.
struct Slow {
  ManualScheduler& clock;
  int& calls;
  Task<AttemptResult<int>> operator()(const AttemptInfo& attempt) {
    ++calls;
    const bool slept = co_await clock.sleep_until(clock.now() + 100ms, attempt.stop);
    if (!slept) co_return AttemptResult<int>::permanent("stopped");
    if (calls < 3) co_return AttemptResult<int>::transient();
    co_return AttemptResult<int>::success(calls);
  }
};

detail::Detached keep(Task<RetryResult<int>> task, std::optional<RetryResult<int>>& result) {
  result = co_await task;
}

}  // namespace

TEST_CASE("co_retry_call waits on its scheduler") {
  ManualScheduler clock;
  int calls = 0;
  auto task = co_retry_call(steady_policy(), clock, Slow{clock, calls});
  std::optional<RetryResult<int>> done;
  keep(std::move(task), done);
  clock.advance(3300ms - 1ns);
  CHECK_FALSE(done);
  clock.advance(1ns);
  REQUIRE(done);
  CHECK(done->last.value == 3);
  CHECK(done->history.attempts[1].start == 1100ms);
  CHECK(done->history.attempts[1].duration == 100ms);
  CHECK(done->history.elapsed == 3300ms);
}

TEST_CASE("a co_retry_call is held back at the rate that its budget keeps") {
  ManualScheduler clock;
  auto policy = times(2, 0s);
  policy.adaptive = true;
  RetryCallOptions options;
  options.budget = std::make_shared<CallBudget>(policy.budget);
  std::vector<Time> tries;
  const auto throttled_once = [&]() -> Task<AttemptResult<int>> {
    tries.push_back(clock.now());
    if (tries.size() == 1) co_return AttemptResult<int>::throttle();
    co_return AttemptResult<int>::success(7);
  };
  auto task = co_retry_call(policy, clock, throttled_once, options);
  std::optional<RetryResult<int>> done;
  keep(std::move(task), done);
  CHECK(tries.size() == 1);
  clock.advance(2s - 1ns);
  CHECK_FALSE(done);
  clock.advance(1ns);  // the least rate is one send in two seconds
  REQUIRE(done);
  CHECK(done->last.value == 7);
  CHECK(tries[1] - tries[0] == 2s);
}

TEST_CASE("a co_retry_call is canceled in its wait, and destroyed in it, and gives back") {
  ManualScheduler clock;
  const auto policy = thrifty_policy(100);
  std::stop_source stop;
  RetryCallOptions options;
  options.stop = stop.get_token();
  options.budget = std::make_shared<CallBudget>(policy.budget);
  int calls = 0;
  {
    auto task = co_retry_call(policy, clock, Slow{clock, calls}, options);
    CHECK(task.operator co_await().await_suspend(std::noop_coroutine()));
    clock.advance(500ms);
    CHECK(options.budget->left(clock.now()) == 90);
  }
  CHECK(options.budget->left(clock.now()) == 100);
  CHECK(clock.sleeping() == 0);

  auto task = co_retry_call(policy, clock, Slow{clock, calls}, options);
  const auto awaiter = task.operator co_await();
  CHECK(awaiter.await_suspend(std::noop_coroutine()));
  clock.advance(500ms);
  stop.request_stop();
  clock.run();
  CHECK(awaiter.await_resume().history.stop_reason == Reason::Canceled);
  CHECK(options.budget->left(clock.now()) == 100);
  CHECK(calls == 2);
}
