#include <httpretry/retry/retry_policy.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("a policy that makes no sense is refused, with what is wrong") {
  struct Row {
    std::function<void(RetryPolicy&)> change;
    std::string wrong;
  };
  constexpr auto kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr auto kInfinity = std::numeric_limits<double>::infinity();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<Row> rows{
      {[](auto& p) { p.max_attempts = 0; }, "max_attempts (0) is out of range: 1 to 2147483647"},
      {[](auto& p) { p.max_elapsed_time = -1s; }, "max_elapsed_time is negative"},
      {[](auto& p) { p.max_elapsed_time = kForever - 1ns; },
       "max_elapsed_time is longer than 365 days"},
      {[](auto& p) { p.attempt_timeout = -1ns; }, "attempt_timeout is negative"},
      {[](auto& p) {
         p.max_attempts.reset();
         p.max_elapsed_time = kForever;
       },
       "max_attempts is unlimited, and needs a max_elapsed_time"},
      {[](auto& p) {
         p.max_elapsed_time = 5s;
         p.attempt_timeout = 6s;
       },
       "attempt_timeout is greater than max_elapsed_time"},
      {[](auto& p) { p.connect_timeout = 0s; },
       "connect_timeout must be greater than 0; kForever means no limit"},
      {[](auto& p) { p.stall_timeout = Duration::min(); }, "stall_timeout is negative"},
      {[](auto& p) { p.server_delay.max = -1s; }, "server_delay.max is negative"},
      {[](auto& p) { p.server_delay.max_over_own = -1s; }, "server_delay.max_over_own is negative"},
      {[=](auto& p) { p.server_delay.spread = kNaN; },
       "server_delay.spread (nan) is out of range: 0 to 1"},
      {[](auto& p) { p.server_delay.spread = 1.5; },
       "server_delay.spread (1.5) is out of range: 0 to 1"},
      {[](auto& p) { p.backoff.initial = -5ms; }, "backoff.initial is negative"},
      {[](auto& p) { p.backoff.increment = kForever; },
       "backoff.increment is longer than 365 days"},
      {[](auto& p) { p.backoff.add = -1ns; }, "backoff.add is negative"},
      {[](auto& p) { p.backoff.initial = 1min; },
       "backoff.initial is greater than its max_interval"},
      {[=](auto& p) { p.backoff.multiplier = kNaN; },
       "backoff.multiplier (nan) is out of range: 1 to 1e+06"},
      {[=](auto& p) { p.backoff.multiplier = kInfinity; },
       "backoff.multiplier (inf) is out of range: 1 to 1e+06"},
      {[](auto& p) { p.backoff.multiplier = 0.5; },
       "backoff.multiplier (0.5) is out of range: 1 to 1e+06"},
      {[](auto& p) { p.backoff.randomization = -0.5; },
       "backoff.randomization (-0.5) is out of range: 0 to 1"},
      {[=](auto& p) { p.backoff.low = kNaN; }, "backoff.low (nan) is out of range: 0 to 1e+06"},
      {[=](auto& p) { p.backoff.high = -kInfinity; },
       "backoff.high (-inf) is out of range: 0 to 1e+06"},
      {[](auto& p) { p.backoff.low = 2; }, "backoff.low is greater than its high"},
      {[](auto& p) { p.backoff.steps = -1; }, "backoff.steps (-1) is out of range: 1 to 1000"},
      {[](auto& p) {
         p.backoff.kind = Backoff::Kind::Slots;
         p.backoff.steps = 53;
       },
       "backoff.steps (53) is out of range: 0 to 52"},
      {[](auto& p) { p.backoff.abort = 0; }, "backoff.abort (0) is out of range: 1 to 2147483647"},
      {[](auto& p) { p.throttle_backoff->max_interval = 1ms; },
       "throttle_backoff.initial is greater than its max_interval"},
      {[](auto& p) { p.retry_on.pending.emplace().backoff.initial = -1s; },
       "retry_on.pending.backoff.initial is negative"},
      {[](auto& p) { p.retry_on.pending.emplace().max = 0; },
       "retry_on.pending.max (0) is out of range: 1 to 2147483647"},
      {[](auto& p) { p.retry_on.pending.emplace().url_from = {"a b"}; },
       "retry_on.pending.url_from has the entry \"a b\", which is not a header name"},
      {[](auto& p) { p.retry_on.pending.emplace().origins = {"https://a.test"}; },
       "retry_on.pending.origins needs url_from, which says where the URL is"},
      {[](auto& p) {
         p.retry_on.pending.emplace().url_from = {"Location"};
         p.retry_on.pending->origins = {"a.test"};
       },
       "retry_on.pending.origins has the entry \"a.test\", which is not an origin such as "
       "\"https://status.example.com\""},
      {[=](auto& p) { p.budget.capacity = kMost; },
       "budget.capacity (9223372036854776) is out of range: 0 to 1e+12"},
      {[=](auto& p) { p.budget.retry_cost = kLeast; },
       "budget.retry_cost (-9223372036854776) is out of range: 0 to 1e+12"},
      {[](auto& p) { p.budget.throttle_cost = -1000; },
       "budget.throttle_cost (-1) is out of range: 0 to 1e+12"},
      {[](auto& p) { p.budget.timeout_cost = -1000; },
       "budget.timeout_cost (-1) is out of range: 0 to 1e+12"},
      {[](auto& p) { p.budget.refill = -1000; }, "budget.refill (-1) is out of range: 0 to 1e+12"},
      {[](auto& p) { p.budget.ratio = -1; }, "budget.ratio (-0.001) is out of range: 0 to 1000"},
      {[](auto& p) {
         p.budget.kind = BudgetPolicy::Kind::Concurrent;
         p.budget.ratio = 1001;
       },
       "budget.ratio (1.001) is out of range: 0 to 1"},
      {[](auto& p) { p.budget.min = -1; }, "budget.min (-1) is out of range: 0 to 2147483647"},
      {[=](auto& p) { p.budget.min_per_second = kMost; },
       "budget.min_per_second (9223372036854776) is out of range: 0 to 1e+09"},
      {[](auto& p) { p.budget.window = 0s; }, "budget.window must be greater than 0"},
      {[](auto& p) { p.budget.window = kForever; }, "budget.window is longer than 365 days"},
      {[](auto& p) { p.guards.breaker.emplace().window = 99ms; },
       "breaker.window is less than 100 ms"},
      {[](auto& p) { p.guards.breaker.emplace().share_window = 99ms; },
       "breaker.share_window is less than 100 ms"},
      {[](auto& p) {
         p.guards.breaker.emplace().kind = BreakerPolicy::Kind::Share;
         p.guards.breaker->when_open = BreakerPolicy::WhenOpen::Wait;
       },
       "breaker.when_open Wait needs a circuit, and Share has none"},
      {[](auto& p) { p.guards.pause.max = 0s; },
       "pause.max must be greater than 0; kForever means no limit"},
      {[](auto& p) { p.guards.rate = RatePolicy::of_requests(0, 1s); },
       "rate.requests (0) is out of range: 1 to 1e+09"},
      {[](auto& p) { p.guards.rate.emplace().burst = 0; },
       "rate.burst (0) is out of range: 1 to 1e+09"},
      {[](auto& p) { p.guards.rate = RatePolicy::of_requests(1'000, 999ns); },
       "rate.per is less than a nanosecond for each request"},
      {[](auto& p) { p.guards.rate = RatePolicy::of_requests(1, -1ns); }, "rate.per is negative"},
      {[](auto& p) { p.guards.rate.emplace().max_wait = -1ns; }, "rate.max_wait is negative"},
      {[](auto& p) {
         auto& further = p.guards.rate.emplace().further.emplace_back();
         further.scope = GuardScope::Policy;
       },
       "rate.further has a limit with another scope"},
      {[](auto& p) { p.guards.rate.emplace().further.emplace_back().further.emplace_back(); },
       "rate.further has a limit with further rates of its own"},
      {[](auto& p) { p.guards.rate.emplace().further.emplace_back().burst = 0; },
       "rate.burst (0) is out of range: 1 to 1e+09"},
      {[](auto& p) { p.guards.concurrency.emplace().max = 0; },
       "concurrency.max (0) is out of range: 1 to 2147483647"},
      {[](auto& p) { p.guards.concurrency.emplace().queue.max = -1; },
       "concurrency.queue.max (-1) is out of range: 0 to 2147483647"},
      {[](auto& p) { p.guards.concurrency.emplace().queue.timeout = 0s; },
       "concurrency.queue.timeout must be greater than 0; kForever means no limit"},
      {[](auto& p) { p.guards.concurrency.emplace().queue.order = ConcurrencyPolicy::Order::Lifo; },
       "concurrency.queue.order Lifo needs a queue.timeout"},
      {[](auto& p) {
         p.guards.concurrency.emplace().kind = ConcurrencyPolicy::Kind::Aimd;
         p.guards.concurrency->min = 0;
       },
       "concurrency.min (0) is out of range: 1 to 2147483647"},
      {[](auto& p) {
         p.guards.concurrency.emplace().kind = ConcurrencyPolicy::Kind::Aimd;
         p.guards.concurrency->backoff_ratio = 0;
       },
       "concurrency.backoff_ratio (0) is out of range: 0.001 to 1"},
      {[](auto& p) {
         p.guards.concurrency.emplace().kind = ConcurrencyPolicy::Kind::Aimd;
         p.guards.concurrency->max = 7;
         p.guards.concurrency->min = 8;
       },
       "concurrency.min is greater than its max"},
      {[](auto& p) { p.guards.breaker.emplace().failure_ratio = 0; },
       "breaker.failure_ratio (0) is out of range: 0.001 to 1"},
      {[](auto& p) { p.guards.breaker.emplace().min_requests = 0; },
       "breaker.min_requests (0) is out of range: 1 to 2147483647"},
      {[](auto& p) { p.guards.breaker.emplace().failures = -1; },
       "breaker.failures (-1) is out of range: 0 to 2147483647"},
      {[](auto& p) { p.guards.breaker.emplace().kind = BreakerPolicy::Kind::Consecutive; },
       "breaker.failures (0) is out of range: 1 to 2147483647"},
      {[](auto& p) { p.guards.breaker.emplace().slow_ratio = 1.5; },
       "breaker.slow_ratio (1.5) is out of range: 0.001 to 1"},
      {[](auto& p) { p.guards.breaker.emplace().k = 0.5; },
       "breaker.k (0.5) is out of range: 1 to 1000"},
      {[](auto& p) { p.guards.breaker.emplace().probes = 0; },
       "breaker.probes (0) is out of range: 1 to 1000"},
      {[](auto& p) { p.guards.breaker.emplace().slow_after = 0s; },
       "breaker.slow_after must be greater than 0; kForever means no limit"},
      {[](auto& p) { p.guards.breaker.emplace().probe_timeout = -1ns; },
       "breaker.probe_timeout is negative"},
      {[](auto& p) { p.guards.breaker.emplace().open_for.initial = -1s; },
       "breaker.open_for.initial is negative"},
      {[](auto& p) {
         p.attempt_timeout = 10s;
         p.guards.breaker.emplace().probe_timeout = 10s - 1ns;
       },
       "breaker.probe_timeout is less than attempt_timeout"},
      {[](auto& p) { p.hedge.emplace().after = -1s; }, "hedge.after is negative"},
      {[](auto& p) { p.hedge.emplace().quantile = 0.4; },
       "hedge.quantile must be 0, or from 0.5 to 0.999"},
      {[](auto& p) { p.hedge.emplace().max_hedges = 0; },
       "hedge.max_hedges (0) is out of range: 1 to 4"},
      {[](auto& p) { p.hedge.emplace().min = 6s; }, "hedge.min is greater than its max"},
      {[](auto& p) { p.hedge.emplace().initial = -1s; }, "hedge.initial is negative"},
      {[](auto& p) { p.hedge.emplace().min_samples = 0; },
       "hedge.min_samples (0) is out of range: 1 to 2147483647"},
      {[](auto& p) { p.hedge.emplace().budget = 0; },
       "hedge.budget (0) is out of range: 0.001 to 1"},
      {[](auto& p) { p.hedge.emplace().budget = 1.5; },
       "hedge.budget (1.5) is out of range: 0.001 to 1"},
      {[](auto& p) { p.hedge.emplace().min = -1ns; }, "hedge.min is negative"},
      {[](auto& p) { p.hedge.emplace().max = kForever; }, "hedge.max is longer than 365 days"},
      {[](auto& p) { p.guards.pause.scope = GuardScope::Credentials; },
       "pause.scope must be endpoint, host or policy"},
      {[](auto& p) { p.hedge.emplace().scope = GuardScope::Credentials; },
       "hedge.scope must be endpoint, host or policy"}};
  for (const auto& row : rows) {
    RetryPolicy policy;
    row.change(policy);
    CHECK_THROWS_WITH_AS(check(policy), ("a retry policy cannot be used: " + row.wrong).c_str(),
                         std::invalid_argument);
  }
}

TEST_CASE("what may be left out, or be without a limit, is no mistake") {
  RetryPolicy policy;
  CHECK_NOTHROW(check(policy));
  policy.throttle_backoff.reset();
  policy.backoff = Backoff();
  policy.attempt_timeout = policy.max_elapsed_time;
  CHECK_NOTHROW(check(policy));
  policy.max_elapsed_time = kForever;
  CHECK_NOTHROW(check(policy));
  policy.max_elapsed_time = 1s;
  policy.attempt_timeout = kForever;
  policy.max_attempts.reset();
  CHECK_NOTHROW(check(policy));
}

TEST_CASE("guards may have any number up to their limits") {
  RetryPolicy policy;
  auto& guards = policy.guards;
  guards.rate = RatePolicy::of_requests(1'000'000'000, 1s);
  guards.rate->burst = 1'000'000'000;
  guards.rate->further = {RatePolicy::of_requests(1, 1ns), RatePolicy::of_cost(1'000, 1'000ns)};
  auto& concurrency = guards.concurrency.emplace();
  concurrency.kind = ConcurrencyPolicy::Kind::Aimd;
  concurrency.max = concurrency.min = 1;
  concurrency.backoff_ratio = 1;
  concurrency.queue.max = 0;
  concurrency.queue.order = ConcurrencyPolicy::Order::Lifo;
  concurrency.queue.timeout = 1ns;
  auto& breaker = guards.breaker.emplace();
  breaker.failure_ratio = breaker.slow_ratio = 0.001;
  breaker.min_requests = 1;
  breaker.slow_after = 1ns;
  breaker.window = breaker.share_window = 100ms;
  policy.attempt_timeout = breaker.probe_timeout = 10s;
  for (const int least_or_most : {1, 1000}) {
    breaker.k = least_or_most;
    breaker.probes = least_or_most;
    CHECK_NOTHROW(check(policy));
  }
  breaker.kind = BreakerPolicy::Kind::Consecutive;
  breaker.failures = 1;
  CHECK_NOTHROW(check(policy));
  breaker.kind = BreakerPolicy::Kind::Share;  // which has no probes
  breaker.probe_timeout = 0s;
  CHECK_NOTHROW(check(policy));
}

TEST_CASE("a hedge may have any number up to its limits, and no budget") {
  RetryPolicy policy;
  auto& hedge = policy.hedge.emplace();
  for (const double budget : {0.001, 1.0}) {
    hedge.budget = budget;
    CHECK_NOTHROW(check(policy));
  }
  hedge.budget.reset();
  for (const double quantile : {0.0, 0.5, 0.999}) {
    hedge.quantile = quantile;
    CHECK_NOTHROW(check(policy));
  }
  for (const int most : {1, 4}) {
    hedge.max_hedges = most;
    CHECK_NOTHROW(check(policy));
  }
  hedge.min_samples = 1;
  hedge.after = hedge.min = hedge.max = 0s;
  hedge.initial = 365 * 24h;
  CHECK_NOTHROW(check(policy));
}
