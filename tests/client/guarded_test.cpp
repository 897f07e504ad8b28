#include "policies.hpp"
#include "virtual_clock.hpp"

#include <httpretry/guard/local_state.hpp>
#include <httpretry/middleware/guarded.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

struct Calls {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::vector<Duration> at;

  [[nodiscard]] RetryCallOptions options(Duration timeout = kForever) const {
    RetryCallOptions options;
    options.clock = clock;
    options.timeout = timeout;
    options.random = fixed_random(0.5);
    return options;
  }
  // Returns a function that notes when it is called, and returns `result`.
  auto returning(AttemptResult<> result) {
    return [this, result] {
      at.push_back(clock->now().time_since_epoch());
      return result;
    };
  }
};

using Times = std::vector<Duration>;

RetryPolicy once() {
  auto policy = steady_policy();
  policy.max_attempts = 1;
  return policy;
}

RetryPolicy breaking_after(int failures, RetryPolicy policy = once()) {
  auto& breaker = policy.guards.breaker.emplace();
  breaker.kind = BreakerPolicy::Kind::Consecutive;
  breaker.failures = failures;
  breaker.open_for = doubling(10s);
  return policy;
}

}  // namespace

TEST_CASE("guarded: calls of a function are spaced by the rate") {
  Calls calls;
  auto policy = once();
  policy.guards.rate = RatePolicy::per_second(2);
  auto ping = guarded(policy, calls.returning(AttemptResult<>::success()));
  for (int i = 0; i < 4; ++i) CHECK(retry_call(policy, ping, calls.options()));
  CHECK(calls.at == Times{0ms, 500ms, 1s, 1500ms});
}

TEST_CASE("guarded: a rate that comes too late refuses the call") {
  Calls calls;
  auto policy = once();
  policy.guards.rate = RatePolicy::per_second(2);
  auto ping = guarded(policy, calls.returning(AttemptResult<>::success()));
  CHECK(retry_call(policy, ping, calls.options()));
  const auto refused = retry_call(policy, ping, calls.options(499ms));
  CHECK_FALSE(refused);
  CHECK(refused.last.cls == Class::Permanent);
  CHECK(refused.last.reason ==
        "the rate of the function allows the request in 500 ms, too late for max_elapsed_time, "
        "max_wait or the deadline");
  CHECK(refused.last.delay == 500ms);
  CHECK(calls.at == Times{0s});
  policy.max_elapsed_time = 499ms;
  CHECK(retry_call(policy, ping, calls.options()).last.reason == refused.last.reason);
  CHECK(calls.at == Times{0s});
  CHECK(retry_call(policy, ping, calls.options(500ms)).last.reason == refused.last.reason);
  policy.max_elapsed_time = 500ms;
  CHECK(retry_call(policy, ping, calls.options(500ms)));
  CHECK(calls.at == Times{0s, 500ms});
}

TEST_CASE("guarded: the circuit opens after failures, refuses, and closes after a probe") {
  Calls calls;
  const auto policy = breaking_after(3);
  const auto guards = std::make_shared<CallGuards>(policy, "the database");
  const auto call = [&](AttemptResult<> result) {
    return retry_call(policy, guarded(guards, calls.returning(std::move(result))), calls.options());
  };
  for (int i = 0; i < 3; ++i) CHECK_FALSE(call(AttemptResult<>::transient("lost")));
  const auto refused = call(AttemptResult<>::success());
  CHECK(refused.last.reason == "the circuit of the database is open (3 failures in a row)");
  CHECK(refused.last.delay == 10s);
  CHECK(calls.at.size() == 3);
  (void)calls.clock->wait_until(calls.clock->now() + 10s, {});
  CHECK(call(AttemptResult<>::success()));
  CHECK_FALSE(call(AttemptResult<>::transient("lost")));
  CHECK(call(AttemptResult<>::success()));
}

TEST_CASE("guarded: the breaker counts the attempts of one call") {
  Calls calls;
  const auto policy = breaking_after(2, steady_policy());
  auto failing = guarded(policy, calls.returning(AttemptResult<>::transient("lost")));
  const auto done = retry_call(policy, failing, calls.options());
  CHECK(calls.at == Times{0s, 1s});
  CHECK(done.last.reason == "the circuit of the function is open (2 failures in a row)");
  REQUIRE(done.history.attempts.size() == 3);
  CHECK(done.history.attempts[1].rule == "lost");
  CHECK(done.history.stop_reason == Reason::NotRetryable);
}

TEST_CASE("guarded: what the breaker counts") {
  struct Case {
    std::string name;
    AttemptResult<> result;
    bool throttle_fails;
    bool opens;
  };
  const std::vector<Case> cases = {
      {"transient", AttemptResult<>::transient(), false, true},
      {"throttle", AttemptResult<>::throttle(), false, false},
      {"throttle that fails", AttemptResult<>::throttle(), true, true},
      {"permanent", AttemptResult<>::permanent(), false, false},
      {"success", AttemptResult<>::success(), false, false},
  };
  for (const auto& one : cases) {
    CAPTURE(one.name);
    Calls calls;
    auto policy = breaking_after(1);
    policy.guards.breaker->throttle_fails = one.throttle_fails;
    auto f = guarded(policy, calls.returning(one.result));
    (void)retry_call(policy, f, calls.options());
    (void)retry_call(policy, f, calls.options());
    CHECK(calls.at.size() == (one.opens ? 1U : 2U));
  }
}

TEST_CASE("guarded: the deadline of an attempt does not count the wait") {
  Calls calls;
  auto policy = once();
  policy.attempt_timeout = 3s;
  policy.guards.rate = RatePolicy::per_second(1);
  std::vector<Duration> deadlines;
  auto f = guarded(policy, [&](const AttemptInfo& attempt) {
    deadlines.push_back(attempt.deadline - calls.clock->now());
    return AttemptResult<>::success();
  });
  CHECK(retry_call(policy, f, calls.options()));
  CHECK(retry_call(policy, f, calls.options()));
  CHECK(retry_call(policy, f, calls.options(/*timeout=*/3s)));
  CHECK(deadlines == Times{3s, 3s, 2s});
}

TEST_CASE("guarded: a throttle with a delay holds back all calls of the guards") {
  Calls calls;
  const auto policy = once();
  const auto guards = std::make_shared<CallGuards>(policy);
  const auto call = [&](AttemptResult<> result) {
    return retry_call(policy, guarded(guards, calls.returning(std::move(result))), calls.options());
  };
  CHECK_FALSE(call(AttemptResult<>::throttle().after(4s)));
  CHECK(call(AttemptResult<>::success()));
  CHECK(calls.at == Times{0s, 4s});
  CHECK_FALSE(call(AttemptResult<>::throttle().after(24h)));
  CHECK(call(AttemptResult<>::success()));
  CHECK(calls.at[3] - calls.at[2] == policy.guards.pause.max);
}

TEST_CASE("guarded: guards of one name share their states, if they share the state") {
  Calls calls;
  const auto policy = breaking_after(1);
  const auto state = local_state();
  const auto call = [&](const char* name, std::shared_ptr<SharedState> kept,
                        AttemptResult<> result) {
    const auto guards = std::make_shared<CallGuards>(policy, name, std::move(kept));
    return bool(
        retry_call(policy, guarded(guards, calls.returning(std::move(result))), calls.options()));
  };
  CHECK_FALSE(call("one", state, AttemptResult<>::transient()));
  CHECK_FALSE(call("one", state, AttemptResult<>::success()));
  CHECK(call("another", state, AttemptResult<>::success()));
  CHECK(call("one", nullptr, AttemptResult<>::success()));
}

TEST_CASE("guarded: an exception gives back what the attempt has taken") {
  Calls calls;
  auto policy = breaking_after(1);
  policy.guards.concurrency.emplace().max = 1;
  const auto guards = std::make_shared<CallGuards>(policy);
  const auto broken = [&]() -> AttemptResult<> { throw std::runtime_error("broken"); };
  CHECK_THROWS_AS((void)retry_call(policy, guarded(guards, broken), calls.options()),
                  std::runtime_error);
  CHECK(retry_call(policy, guarded(guards, calls.returning(AttemptResult<>::success())),
                   calls.options()));
}

TEST_CASE("guarded: a stop ends the wait for the guards") {
  // Stop is requested while the call waits.
  class StoppedInWait final : public BlockingClock {
   public:
    explicit StoppedInWait(std::stop_source stop) : stop_(std::move(stop)) {}
    [[nodiscard]] Time now() const override { return Time(); }
    bool wait_until(Time /*when*/, const std::stop_token& stop) const override {
      stop_.request_stop();
      CHECK(stop.stop_requested());
      return false;
    }

   private:
    mutable std::stop_source stop_;
  };
  Calls calls;
  auto policy = once();
  policy.guards.rate = RatePolicy::per_second(1);
  auto ping = guarded(policy, calls.returning(AttemptResult<>::success()));
  std::stop_source stop;
  RetryCallOptions options;
  options.stop = stop.get_token();
  options.clock = std::make_shared<StoppedInWait>(stop);
  CHECK(retry_call(policy, ping, options));
  const auto stopped = retry_call(policy, ping, options);
  CHECK(stopped.last.reason == "canceled");
  CHECK(calls.at.size() == 1);
}

TEST_CASE("guarded: an exception in the wait for the guards ends the call") {
  class Broken final : public BlockingClock {
   public:
    [[nodiscard]] Time now() const override { return Time(); }
    bool wait_until(Time /*when*/, const std::stop_token& /*stop*/) const override {
      throw std::runtime_error("broken");
    }
  };
  Calls calls;
  auto policy = once();
  policy.guards.rate = RatePolicy::per_second(1);
  auto ping = guarded(policy, calls.returning(AttemptResult<>::success()));
  RetryCallOptions options;
  options.clock = std::make_shared<Broken>();
  CHECK(retry_call(policy, ping, options));
  CHECK_THROWS_AS((void)retry_call(policy, ping, options), std::runtime_error);
  CHECK(calls.at.size() == 1);
}

TEST_CASE("guarded: an invalid policy is refused") {
  auto policy = once();
  policy.guards.rate = RatePolicy::per_second(0);
  CHECK_THROWS_AS((void)guarded(policy, [] { return AttemptResult<>::success(); }),
                  std::invalid_argument);
}

TEST_CASE("guarded: threads wait for a slot, and each of them gets one") {
  constexpr int kThreads = 8;
  constexpr int kCalls = 200;
  auto policy = once();
  policy.guards.concurrency.emplace().max = 2;
  const auto guards = std::make_shared<CallGuards>(policy);
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  std::latch all(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      all.arrive_and_wait();
      for (int call = 0; call < kCalls; ++call) {
        const auto result = retry_call(
            policy, guarded(guards, [&] {
              const int now_inside = ++inside;
              int seen = most;
              while (now_inside > seen && !most.compare_exchange_weak(seen, now_inside)) {
              }
              std::this_thread::yield();
              --inside;
              return AttemptResult<>::success();
            }));
        if (result) ++done;
      }
    });
  }
  threads.clear();
  CHECK(done == kThreads * kCalls);
  CHECK(most <= 2);
}

namespace {

// A coroutine function that takes `took`, unless it is stopped.
struct Slow {
  ManualScheduler& clock;
  Duration took;
  bool obeys = true;
  Task<AttemptResult<int>> operator()(const AttemptInfo& attempt) const {
    const auto stop = obeys ? attempt.stop : std::stop_token();
    const auto wait = clock.sleep_until(clock.now() + took, stop);
    const bool slept = co_await wait;
    if (!slept) co_return AttemptResult<int>::permanent("stopped");
    co_return AttemptResult<int>::success(7);
  }
};

detail::Detached keep(Task<RetryResult<int>> task, std::optional<RetryResult<int>>& result) {
  result = co_await task;
}

std::optional<RetryResult<int>> begin(const RetryPolicy& policy, ManualScheduler& clock,
                                      Guarded<Slow> f, std::stop_token stop = {}) {
  RetryCallOptions options;
  options.stop = std::move(stop);
  options.random = fixed_random(0.5);
  std::optional<RetryResult<int>> done;
  keep(co_retry_call(policy, clock, std::move(f), options), done);
  for (int second = 0; second < 100 && !done; ++second) clock.advance(1s);
  return done;
}

}  // namespace

TEST_CASE("guarded: a coroutine is stopped at its deadline, and the breaker counts it") {
  ManualScheduler clock;
  auto policy = breaking_after(1);
  policy.attempt_timeout = 2s;
  const auto guards = std::make_shared<CallGuards>(policy);
  const auto timed_out = begin(policy, clock, guarded(guards, Slow{clock, 3s}));
  REQUIRE(timed_out);
  CHECK(timed_out->last.reason == "timed out");
  CHECK(timed_out->history.elapsed == 2s);
  CHECK(clock.sleeping() == 0);
  const auto refused = begin(policy, clock, guarded(guards, Slow{clock, 1s}));
  REQUIRE(refused);
  CHECK(refused->last.reason == "the circuit of the function is open (1 failure in a row)");
}

TEST_CASE("guarded: a coroutine that succeeds after its deadline has succeeded") {
  ManualScheduler clock;
  auto policy = breaking_after(1);
  policy.attempt_timeout = 2s;
  const auto late = begin(policy, clock, guarded(policy, Slow{clock, 3s, /*obeys=*/false}));
  REQUIRE(late);
  CHECK(late->last.value == 7);
}

TEST_CASE("guarded: coroutines wait for their turn, without a thread") {
  ManualScheduler clock;
  auto policy = once();
  policy.attempt_timeout = 2s;
  policy.guards.concurrency.emplace().max = 1;
  const auto guards = std::make_shared<CallGuards>(policy);
  std::optional<RetryResult<int>> first;
  std::optional<RetryResult<int>> second;
  std::optional<RetryResult<int>> canceled;
  std::stop_source stop;
  RetryCallOptions stoppable;
  stoppable.stop = stop.get_token();
  keep(co_retry_call(policy, clock, guarded(guards, Slow{clock, 1500ms})), first);
  keep(co_retry_call(policy, clock, guarded(guards, Slow{clock, 1500ms})), second);
  keep(co_retry_call(policy, clock, guarded(guards, Slow{clock, 1500ms}), stoppable), canceled);
  clock.advance(1s);
  stop.request_stop();
  clock.run();
  REQUIRE(canceled);
  CHECK(canceled->last.reason == "canceled");
  clock.advance(500ms);
  CHECK(first);
  CHECK_FALSE(second);
  clock.advance(1500ms);
  REQUIRE(second);  // its attempt_timeout began with its turn
  CHECK(second->last.value == 7);
  CHECK(second->history.elapsed == 3s);
}
