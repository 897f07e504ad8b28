#include "lib/guard/limit_rules.hpp"

#include <httpretry/retry/guard_policy.hpp>

#include <doctest/doctest.h>

#include <memory>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

TEST_CASE("a time that never comes is no date") {
  const Time now{100s};
  const WallTime wall_now{1'800'000'000s};
  CHECK(wall_time(now + 5s, now, wall_now) == wall_now + 5s);
  CHECK(wall_time(now - 5s, now, wall_now) == wall_now - 5s);
  CHECK_FALSE(wall_time(kNever, now, wall_now));
}

TEST_CASE("a breaker for retries only is not asked for the first attempt") {
  LimitKeys keys;
  const auto policy = std::make_shared<GuardPolicy>();
  policy->breaker = BreakerPolicy();
  keys.policy = policy;
  SendAsk first;
  SendAsk again;
  again.is_retry = true;
  CHECK_FALSE(asks_breaker(keys, again));  // it has none
  keys.breaker = "breaker https://a";
  CHECK(asks_breaker(keys, first));
  CHECK(asks_breaker(keys, again));
  policy->breaker->applies_to = BreakerPolicy::AppliesTo::Retries;
  CHECK_FALSE(asks_breaker(keys, first));
  CHECK(asks_breaker(keys, again));
}

TEST_CASE("a ramp learns from sends that say something of the server") {
  CHECK(ramp_end(nullptr) == Pause::End::Unknown);
  SendEnd end;
  end.responded = true;
  end.counts = false;
  CHECK(ramp_end(&end) == Pause::End::Unknown);
  end.counts = true;
  CHECK(ramp_end(&end) == Pause::End::Responded);
  end.responded = false;
  CHECK(ramp_end(&end) == Pause::End::Failed);
}
