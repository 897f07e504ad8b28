// A value that a file may have may be set in code, and no other.
#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Change = std::function<void(RetryPolicy&)>;
using Kind = Backoff::Kind;

constexpr auto kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr auto kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kYear = Duration(365 * 24h);

// As the JSON of a policy file.
bool a_file_may_say(const RetryPolicy& policy) {
  PolicyBuilder builder;
  builder.unlimited_attempts();
  if (policy.max_attempts) builder.max_attempts(*policy.max_attempts);
  builder.max_elapsed_time(policy.max_elapsed_time)
      .attempt_timeout(policy.attempt_timeout)
      .response_timeout(policy.response_timeout)
      .connect_timeout(policy.connect_timeout)
      .stall_timeout(policy.stall_timeout)
      .backoff(policy.backoff)
      .throttle_backoff(policy.throttle_backoff)
      .retry_on(policy.retry_on)
      .server_delay(policy.server_delay)
      .budget(policy.budget);
  return PolicySet::builder().fallback(builder).build("x").has_value();
}

bool code_may_say(const RetryPolicy& policy) {
  try {
    check(policy);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

Change backoff(Kind kind, std::function<void(Backoff&)> change) {
  return [kind, change](RetryPolicy& policy) {
    policy.backoff = Backoff();
    policy.backoff.kind = kind;
    change(policy.backoff);
  };
}

Change jitter(Backoff::Jitter jitter, std::function<void(Backoff&)> change) {
  return [jitter, change](RetryPolicy& policy) {
    policy.backoff.jitter = jitter;
    change(policy.backoff);
  };
}

Change budget(BudgetPolicy::Kind kind, std::function<void(BudgetPolicy&)> change) {
  return [kind, change](RetryPolicy& policy) {
    policy.budget.kind = kind;
    change(policy.budget);
  };
}

const std::vector<Change>& good() {
  static const std::vector<Change> changes{
      [](auto& p) { p.max_attempts = std::numeric_limits<int>::max(); },
      [](auto& p) { p.max_elapsed_time = p.attempt_timeout = kYear; },
      [](auto& p) { p.max_attempts.reset(); },
      [](auto& p) { p.max_elapsed_time = p.connect_timeout = p.stall_timeout = kForever; },
      [](auto& p) { p.server_delay.max = 0s; },
      [](auto& p) { p.server_delay.spread = 1; },
      [](auto& p) { p.retry_on.pending.emplace().url_from = {"Location"}; },
      [](auto& p) {
        p.retry_on.pending.emplace().url_from = {"Operation-Location", "Location"};
        p.retry_on.pending->origins = {"https://a.test", "https://*.b.test"};
      },
      backoff(Kind::Constant, [](auto& b) { b.initial = kYear; }),
      backoff(Kind::Exponential, [](auto& b) { b.multiplier = 1; }),
      backoff(Kind::Exponential, [](auto& b) { b.multiplier = 1e6; }),
      backoff(Kind::Slots, [](auto& b) { b.steps = 0; }),
      backoff(Kind::Slots, [](auto& b) { b.steps = 52; }),
      backoff(Kind::TruncatedBinary,
              [](auto& b) {
                b.max_interval = 1s;
                b.steps = 1000;
              }),
      budget(BudgetPolicy::Kind::Tokens, [](auto& b) { b.capacity = 1'000'000'000'000'000; }),
      budget(BudgetPolicy::Kind::Tokens, [](auto& b) { b.retry_cost = 0; }),
      budget(BudgetPolicy::Kind::Ratio, [](auto& b) { b.ratio = 1'000'000; }),
      budget(BudgetPolicy::Kind::Ratio, [](auto& b) { b.min_per_second = 1'000'000'000'000; }),
      budget(BudgetPolicy::Kind::Ratio, [](auto& b) { b.window = kYear; }),
  };
  return changes;
}

const std::vector<Change>& bad() {
  static const std::vector<Change> changes{
      [](auto& p) { p.max_attempts = 0; },
      [](auto& p) {
        p.max_attempts.reset();
        p.max_elapsed_time = kForever;
      },
      [](auto& p) { p.attempt_timeout = p.max_elapsed_time + 1ns; },
      [](auto& p) { p.max_elapsed_time = 0s; },
      [](auto& p) { p.response_timeout = 0s; },
      [](auto& p) { p.max_elapsed_time = kForever - 1ns; },
      [](auto& p) { p.connect_timeout = -1ns; },
      [](auto& p) { p.stall_timeout = kYear + 1ns; },
      [](auto& p) { p.server_delay.max = -1s; },
      [](auto& p) { p.server_delay.spread = kNaN; },
      [](auto& p) { p.retry_on.pending.emplace().max = 0; },
      [](auto& p) { p.retry_on.pending.emplace().url_from = {"a b"}; },
      [](auto& p) {
        p.retry_on.pending.emplace().url_from = {"Location", ""};
      },
      [](auto& p) { p.retry_on.pending.emplace().origins = {"https://a.test"}; },
      [](auto& p) {
        p.retry_on.pending.emplace().url_from = {"Location"};
        p.retry_on.pending->origins = {"a.test"};
      },
      backoff(Kind::Constant, [](auto& b) { b.initial = kForever; }),
      backoff(Kind::Linear, [](auto& b) { b.increment = -1ns; }),
      backoff(Kind::Exponential, [](auto& b) { b.multiplier = kNaN; }),
      backoff(Kind::Exponential, [](auto& b) { b.multiplier = kInfinity; }),
      backoff(Kind::Decorrelated, [](auto& b) { b.multiplier = 0.9; }),
      backoff(Kind::Slots, [](auto& b) { b.steps = 53; }),
      backoff(Kind::Slots, [](auto& b) { b.abort = 0; }),
      backoff(Kind::TruncatedBinary, [](auto& /*max_interval is needed*/) {}),
      backoff(Kind::TruncatedBinary,
              [](auto& b) {
                b.max_interval = 1s;
                b.steps = 0;
              }),
      jitter(Backoff::Jitter::Proportional, [](auto& b) { b.randomization = 1.1; }),
      jitter(Backoff::Jitter::Range, [](auto& b) { b.low = -1; }),
      jitter(Backoff::Jitter::Range, [](auto& b) { b.high = kInfinity; }),
      jitter(Backoff::Jitter::Range, [](auto& b) { b.low = 2; }),
      jitter(Backoff::Jitter::Additive, [](auto& b) { b.add = -1ns; }),
      budget(BudgetPolicy::Kind::Tokens, [](auto& b) { b.capacity = 1'000'000'000'001'000; }),
      budget(BudgetPolicy::Kind::Tokens, [](auto& b) { b.refill = -1; }),
      budget(BudgetPolicy::Kind::Grpc, [](auto& b) { b.capacity = -1; }),
      budget(BudgetPolicy::Kind::Ratio, [](auto& b) { b.ratio = 1'000'001; }),
      budget(BudgetPolicy::Kind::Ratio, [](auto& b) { b.min_per_second = -1; }),
      budget(BudgetPolicy::Kind::Ratio, [](auto& b) { b.window = 0s; }),
  };
  return changes;
}

void check_both(const std::vector<Change>& changes, bool allowed) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    RetryPolicy policy;
    changes[i](policy);
    CHECK(a_file_may_say(policy) == allowed);
    CHECK(code_may_say(policy) == allowed);
  }
}

}  // namespace

TEST_CASE("what a file may say, code may say") { check_both(good(), true); }

TEST_CASE("what a file may not say, code may not say") { check_both(bad(), false); }

TEST_CASE("a set for one policy refuses what a check refuses") {
  RetryPolicy policy;
  policy.backoff.multiplier = kNaN;
  ResolvedPolicy resolved;
  resolved.policy = std::make_shared<const RetryPolicy>(policy);
  CHECK_THROWS_AS(PolicySet{resolved}, std::invalid_argument);
}
