// What hedges are decided by, without sends.
#include "start.hpp"

#include "lib/core/guard/hedge_state.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <httpretry/guard/local_state.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {

HedgePolicy at_quantile(double quantile) {
  HedgePolicy policy;
  policy.quantile = quantile;
  return policy;
}

}  // namespace

TEST_CASE("a fixed delay needs no samples") {
  HedgePolicy policy;
  policy.after = 1ms;  // min is for quantiles
  HedgeState state;
  const auto delay = state.delay(policy, kStart);
  CHECK(delay.after == 1ms);
  CHECK_FALSE(delay.refused);
  CHECK(source_text(policy, delay) == "fixed");
}

TEST_CASE("49 samples are too few, 50 are enough") {
  const auto policy = at_quantile(0.95);
  HedgeState state;
  CHECK(state.delay(policy, kStart).after == policy.max);
  CHECK(state.delay(policy, kStart).refused == HedgeRefused::Warming);
  for (int i = 0; i < 49; ++i) state.add_sample(100ms, kStart);
  auto delay = state.delay(policy, kStart);
  CHECK(delay.refused == HedgeRefused::Warming);
  CHECK(delay.after > 94ms);
  CHECK(delay.after < 106ms);
  state.add_sample(100ms, kStart);
  delay = state.delay(policy, kStart);
  CHECK_FALSE(delay.refused);
  CHECK(source_text(policy, delay) == "p95 of 50 samples");
}

TEST_CASE("while there are few samples, `initial` counts") {
  auto policy = at_quantile(0.95);
  policy.initial = 300ms;
  HedgeState state;
  state.add_sample(1ms, kStart);
  const auto delay = state.delay(policy, kStart);
  CHECK(delay.after == 300ms);
  CHECK_FALSE(delay.refused);
  CHECK(source_text(policy, delay) == "initial");
}

TEST_CASE("a quantile is kept within min and max") {
  auto policy = at_quantile(0.5);
  policy.min_samples = 1;
  HedgeState quick;
  quick.add_sample(200us, kStart);
  CHECK(quick.delay(policy, kStart).after == policy.min);
  CHECK(source_text(policy, quick.delay(policy, kStart)) == "p50 of 1 samples");
  HedgeState slow;
  slow.add_sample(6s, kStart);
  CHECK(slow.delay(policy, kStart).after == policy.max);
  CHECK(slow.delay(policy, kStart).refused == HedgeRefused::OverRange);
}

TEST_CASE("a quantile follows the samples") {
  const auto policy = at_quantile(0.95);
  HedgeState state;
  for (int i = 0; i < 1000; ++i) state.add_sample(10ms, kStart);
  CHECK(state.delay(policy, kStart).after < 11ms);
  for (int i = 0; i < 200; ++i) state.add_sample(1s, kStart);
  CHECK(state.delay(policy, kStart).after > 900ms);
  CHECK(state.delay(policy, kStart + 31s).refused == HedgeRefused::Warming);
}

TEST_CASE("the budget is a part of the calls of ten seconds, without a floor") {
  HedgeBudget budget;
  CHECK_FALSE(budget.take(0.05, kStart));
  for (int i = 0; i < 19; ++i) budget.count_call(kStart);
  CHECK_FALSE(budget.take(0.05, kStart));
  budget.count_call(kStart);
  CHECK(budget.take(0.05, kStart));
  CHECK_FALSE(budget.take(0.05, kStart));
  budget.give_back(kStart + 1s);
  CHECK(budget.left(0.05, kStart + 1s) == 1);
  CHECK(budget.take(0.05, kStart + 9s));
  CHECK(budget.most(0.05, kStart + 10s) == 0);  // the calls are forgotten
  CHECK_FALSE(budget.take(0.05, kStart + 10s));
}

TEST_CASE("a product that is a little too small is rounded") {
  HedgeBudget budget;
  for (int i = 0; i < 100; ++i) budget.count_call(kStart);
  CHECK(budget.most(0.29, kStart) == 29);
  CHECK(budget.most(0.07, kStart) == 7);
}

TEST_CASE("a throttle ends by itself") {
  HedgeState state;
  state.throttle(kStart + 2s);
  state.throttle(kStart + 1s);
  CHECK(state.throttled(kStart + 1999ms));
  CHECK_FALSE(state.throttled(kStart + 2s));
  CHECK(state.facts("hedge https://a", kStart + 1999ms).until == kStart + 2s);
  CHECK(state.facts("hedge https://a", kStart + 2s).until == kNever);
}

TEST_CASE("a state is as new 30 s after its last call, unless the server wants fewer requests") {
  HedgeState state;
  CHECK(state.idle(kStart));
  state.begin_call(kStart);
  CHECK_FALSE(state.idle(kStart + 30s));
  CHECK(state.idle(kStart + 30s + 1ns));
  state.throttle(kStart + 1min);
  CHECK_FALSE(state.idle(kStart + 1min - 1ns));
  CHECK(state.idle(kStart + 1min));
  state.begin_call(kStart + 1min);
  state.reset();
  CHECK(state.idle(kStart + 1min));
}

TEST_CASE("quantiles have short names") {
  CHECK(policy::quantile_text(0.95) == "p95");
  CHECK(policy::quantile_text(0.999) == "p99.9");
  CHECK(policy::quantile_text(0.5) == "p50");
  CHECK(policy::quantile_text(0.58) == "p58");
}

TEST_CASE("scopes are bounded, and those in use stay") {
  constexpr std::size_t kMost = 4096;
  const auto state = local_state();
  const auto kept = state->hedges("kept", kStart);
  kept->throttle(kStart + 1h);
  for (std::size_t i = 0; i < 2 * kMost; ++i) {
    static_cast<void>(state->hedges("scope " + std::to_string(i), kStart + 1min));
  }
  CHECK(state->states("", kStart + 1min).size() <= kMost);
  CHECK(state->hedges("kept", kStart + 1min)->throttled(kStart + 1min));
}
