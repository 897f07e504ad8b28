// Checks policies that were made in code. Files have the same limits: policy_limits.hpp.
#include "origins.hpp"
#include "policy_limits.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/http/headers.hpp>

#include <stdexcept>
#include <string_view>

namespace httpretry {
namespace {

using policy::NumberLimits;

// Keeps the first problem. Allocates nothing unless there is a problem, because the policy of a
// request is checked in each call.
class Checker {
 public:
  std::string take() { return std::move(problem_); }

  // Checks a policy, and stores the first problem. Each line names the setting that it checks, for
  // the message. `number` and `time` check a range; `limit` is a time that must not be 0, because
  // "no limit" is kForever; `demand` stores the problem unless its condition is true.
  void run(const RetryPolicy& policy) {
    if (policy.max_attempts) number("max_attempts", *policy.max_attempts, policy::kCounts);
    limit("max_elapsed_time", policy.max_elapsed_time);
    limit("attempt_timeout", policy.attempt_timeout);
    demand(!policy::lacks_elapsed_limit(policy), "max_attempts",
           "is unlimited, and needs a max_elapsed_time");
    demand(!policy::attempt_outlasts_call(policy), "attempt_timeout",
           "is greater than max_elapsed_time");
    limit("response_timeout", policy.response_timeout);
    limit("connect_timeout", policy.connect_timeout);
    limit("stall_timeout", policy.stall_timeout);
    backoff("backoff", policy.backoff);
    if (policy.throttle_backoff) backoff("throttle_backoff", *policy.throttle_backoff);
    if (const auto& pending = policy.retry_on.pending) {
      if (pending->max) number("retry_on.pending.max", *pending->max, policy::kCounts);
      backoff("retry_on.pending.backoff", pending->backoff);
      poll_urls(*pending);
    }
    time("server_delay.max", policy.server_delay.max, kMayBeForever);
    time("server_delay.max_over_own", policy.server_delay.max_over_own, kMayBeForever);
    number("server_delay.spread", policy.server_delay.spread, policy::kShares);
    run(policy.budget);
    run(policy.guards);
    if (policy.hedge) hedge(*policy.hedge);
    const auto& breaker = policy.guards.breaker;
    // A breaker of another kind than Share sends a probe when its circuit has been open for a time.
    if (breaker && breaker->kind != BreakerPolicy::Kind::Share) {
      demand(policy.attempt_timeout == kForever || breaker->probe_timeout >= policy.attempt_timeout,
             "breaker.probe_timeout", "is less than attempt_timeout");
    }
  }

  void run(const GuardPolicy& guards) {
    limit("pause.max", guards.pause.max);
    demand(guards.pause.scope != GuardScope::Credentials, "pause.scope",
           "must be endpoint, host or policy");
    if (guards.rate) rate(*guards.rate);
    if (guards.concurrency) concurrency(*guards.concurrency);
    if (guards.breaker) breaker(*guards.breaker);
  }

  void run(const BudgetPolicy& budget) {
    amount("budget.capacity", budget.capacity, policy::kTokens);
    amount("budget.retry_cost", budget.retry_cost, policy::kTokens);
    amount("budget.throttle_cost", budget.throttle_cost, policy::kTokens);
    amount("budget.timeout_cost", budget.timeout_cost, policy::kTokens);
    amount("budget.refill", budget.refill, policy::kTokens);
    const bool concurrent = budget.kind == BudgetPolicy::Kind::Concurrent;
    amount("budget.ratio", budget.ratio, concurrent ? policy::kPartsOfCalls : policy::kRatios);
    number("budget.min", budget.min, policy::kExtras);
    amount("budget.min_per_second", budget.min_per_second, policy::kRates);
    time("budget.window", budget.window);
    demand(budget.window > Duration::zero(), "budget.window", "must be greater than 0");
  }

 private:
  static constexpr bool kMayBeForever = true;  // for `time`

  void rate(const RatePolicy& rate) {
    number("rate.requests", static_cast<double>(rate.requests), policy::kRequests);
    number("rate.burst", static_cast<double>(rate.burst), policy::kRequests);
    time("rate.per", rate.per);
    demand(rate.per.count() >= rate.requests, "rate.per",
           "is less than a nanosecond for each request");
    time("rate.max_wait", rate.max_wait, kMayBeForever);
    for (const auto& further : rate.further) {
      demand(further.scope == rate.scope, "rate.further", "has a limit with another scope");
      demand(further.further.empty(), "rate.further", "has a limit with further rates of its own");
      this->rate(further);
    }
  }

  void concurrency(const ConcurrencyPolicy& concurrency) {
    const auto& queue = concurrency.queue;
    number("concurrency.max", concurrency.max, policy::kCounts);
    number("concurrency.queue.max", queue.max, policy::kQueues);
    limit("concurrency.queue.timeout", queue.timeout);
    demand(queue.order != ConcurrencyPolicy::Order::Lifo || queue.timeout != kForever,
           "concurrency.queue.order", "Lifo needs a queue.timeout");
    if (concurrency.kind == ConcurrencyPolicy::Kind::Aimd) {
      number("concurrency.min", concurrency.min, policy::kCounts);
      number("concurrency.backoff_ratio", concurrency.backoff_ratio, policy::kPartsOfSends);
      demand(concurrency.min <= concurrency.max, "concurrency.min", "is greater than its max");
    }
  }

  // Checks the settings of a circuit breaker, even those that its kind does not use. Each line
  // names the setting, for the message, and the range of its values.
  void breaker(const BreakerPolicy& breaker) {
    // This number of `failures` in a row opens the circuit. For the other kinds, 0 disables this,
    // so they use kQueues, which begins at 0. kCounts begins at 1.
    const bool consecutive = breaker.kind == BreakerPolicy::Kind::Consecutive;
    number("breaker.failure_ratio", breaker.failure_ratio, policy::kPartsOfSends);
    number("breaker.min_requests", breaker.min_requests, policy::kCounts);
    number("breaker.failures", breaker.failures, consecutive ? policy::kCounts : policy::kQueues);
    number("breaker.slow_ratio", breaker.slow_ratio, policy::kPartsOfSends);
    number("breaker.k", breaker.k, policy::kShareFactors);
    demand(breaker.kind != BreakerPolicy::Kind::Share ||
               breaker.when_open != BreakerPolicy::WhenOpen::Wait,
           "breaker.when_open", "Wait needs a circuit, and Share has none");
    number("breaker.probes", breaker.probes, policy::kProbes);
    limit("breaker.slow_after", breaker.slow_after);
    time("breaker.probe_timeout", breaker.probe_timeout);
    window("breaker.window", breaker.window);
    window("breaker.share_window", breaker.share_window);  // the window of Kind::Share
    backoff("breaker.open_for", breaker.open_for);
  }

  void hedge(const HedgePolicy& hedge) {
    time("hedge.after", hedge.after);
    demand(hedge.quantile == 0 || (hedge.quantile >= 0.5 && hedge.quantile <= 0.999),
           "hedge.quantile", "must be 0, or from 0.5 to 0.999");
    if (hedge.initial) time("hedge.initial", *hedge.initial);
    number("hedge.min_samples", hedge.min_samples, policy::kCounts);
    number("hedge.max_hedges", hedge.max_hedges, policy::kHedges);
    if (hedge.budget) number("hedge.budget", *hedge.budget, policy::kPartsOfSends);
    time("hedge.min", hedge.min);
    time("hedge.max", hedge.max);
    demand(hedge.min <= hedge.max, "hedge.min", "is greater than its max");
    demand(hedge.scope != GuardScope::Credentials, "hedge.scope",
           "must be endpoint, host or policy");
  }

  // Checks the backoff in the policy's setting `name`, even the parts that its kind does not use.
  // Each line names a part, for the message, and the range of its values.
  void backoff(std::string_view name, const Backoff& backoff) {
    object_ = name;  // messages then call the settings "backoff.initial" and so on
    time("initial", backoff.initial);
    time("increment", backoff.increment);
    time("add", backoff.add);
    // TruncatedBinary chooses from waits up to max_interval, so it cannot be kForever.
    const bool may_be_forever = backoff.kind != Backoff::Kind::TruncatedBinary;
    time("max_interval", backoff.max_interval, may_be_forever);
    number("multiplier", backoff.multiplier, policy::kMultipliers);
    number("randomization", backoff.randomization, policy::kShares);
    number("low", backoff.low, policy::kFactors);
    number("high", backoff.high, policy::kFactors);
    // Slots computes 2^steps in a double, which is exact up to 2^52.
    const bool is_exponent = backoff.kind == Backoff::Kind::Slots;
    number("steps", backoff.steps, is_exponent ? policy::kDoublings : policy::kSteps);
    number("abort", backoff.abort, policy::kCounts);
    demand(backoff.initial <= backoff.max_interval, "initial", "is greater than its max_interval");
    demand(backoff.low <= backoff.high, "low", "is greater than its high");
    object_ = {};
  }

  // Checks the settings for pending responses that name a URL to poll.
  void poll_urls(const PendingRule& pending) {
    for (const auto& header : pending.url_from) {
      if (valid_header_name(header)) continue;
      add_problem("retry_on.pending.url_from",
                  "has the entry \"" + header + "\", which is not a header name");
    }
    for (const auto& origin : pending.origins) {
      if (policy::is_origin_pattern(origin)) continue;
      add_problem("retry_on.pending.origins",
                  "has the entry \"" + origin +
                      "\", which is not an origin such as \"https://status.example.com\"");
    }
    demand(pending.origins.empty() || !pending.url_from.empty(), "retry_on.pending.origins",
           "needs url_from, which says where the URL is");
  }

  void limit(std::string_view name, Duration value) {
    time(name, value, kMayBeForever);
    demand(value != Duration::zero(), name, "must be greater than 0; kForever means no limit");
  }

  void time(std::string_view name, Duration value, bool may_be_forever = false) {
    demand(value >= Duration::zero(), name, "is negative");
    const bool no_limit = may_be_forever && value == kForever;
    demand(no_limit || value <= policy::kLongestDuration, name, "is longer than 365 days");
  }

  void window(std::string_view name, Duration value) {
    time(name, value);
    demand(value >= policy::kShortestWindow, name, "is less than 100 ms");
  }

  // NaN is outside all limits.
  void number(std::string_view name, double value, const NumberLimits& limits) {
    if (value >= limits.least && value <= limits.most) return;
    add_problem(name, "(" + text_of(value) + ") is out of range: " + text_of(limits.least) +
                          " to " + text_of(limits.most));
  }

  void amount(std::string_view name, std::int64_t parts, const NumberLimits& limits) {
    number(name, static_cast<double>(parts) / limits.parts, limits);
  }

  // Adds the problem that the setting `name` has, unless the condition holds.
  void demand(bool condition, std::string_view name, std::string_view problem) {
    if (!condition) add_problem(name, problem);
  }

  void add_problem(std::string_view name, std::string_view problem) {
    if (!problem_.empty()) return;
    problem_ = "a retry policy cannot be used: ";
    if (!object_.empty()) problem_.append(object_).append(".");
    problem_.append(name).append(" ").append(problem);
  }

  std::string problem_;
  std::string_view object_;  // the part of the policy to which names are relative; may be empty
};

}  // namespace

std::string policy::problem_of(const RetryPolicy& policy) {
  Checker checker;
  checker.run(policy);
  return checker.take();
}

void check(const RetryPolicy& policy) {
  if (const auto problem = policy::problem_of(policy); !problem.empty()) {
    throw std::invalid_argument(problem);
  }
}

void check(const BudgetPolicy& budget) {
  Checker checker;
  checker.run(budget);
  if (const auto problem = checker.take(); !problem.empty()) throw std::invalid_argument(problem);
}

}  // namespace httpretry
