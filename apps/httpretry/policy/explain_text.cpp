#include "policy/explain_text.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace httpretry::cli {
namespace {

constexpr int kAtOnce = 100;  // calls in the example of rate_text

std::string shared_by(GuardScope scope, const ResolvedPolicy& resolved, const Request& request) {
  const auto host = std::string(request.parsed_url()->origin());
  switch (scope) {
    case GuardScope::Host: return host;
    case GuardScope::Policy: return "the policy";
    case GuardScope::Endpoint:
      return resolved.endpoint.empty() ? host : "endpoint " + resolved.endpoint;
    case GuardScope::Credentials: return host + ", by credentials";
  }
  return host;
}

// Describes a limit on the rate of requests, such as "10 in 1.00 s, burst 10: 100 calls at once
// take 9.00 s". The burst is the number of requests that may be sent at once. Further ones follow
// at even intervals. The example with 100 calls is left out if the burst covers them, or if the
// policy counts the costs of requests instead of their number.
std::string rate_text(const RatePolicy& rate) {
  const bool counts_cost = rate.counts == RatePolicy::Counts::Cost;
  auto text = std::string(counts_cost ? "a cost of " : "") + std::to_string(rate.requests) +
              " in " + duration_text(rate.per) + ", burst " + std::to_string(rate.burst);
  if (counts_cost) {
    text += "; a request that costs more fails";
  } else if (rate.burst < kAtOnce) {
    const auto after_burst = kAtOnce - rate.burst;
    text += ": " + std::to_string(kAtOnce) + " calls at once take " +
            duration_text(rate.per / rate.requests * after_burst);
  }
  if (rate.max_wait != kForever) {
    text +=
        "; a request that would wait longer than " + duration_text(rate.max_wait) + " is refused";
  }
  return text;
}

std::string slots_text(const ConcurrencyPolicy& limits) {
  const auto& queue = limits.queue;
  auto text = limits.kind == ConcurrencyPolicy::Kind::Fixed
                  ? std::to_string(limits.max) + " at once"
                  : std::to_string(limits.initial) + " at once initially, then " +
                        std::to_string(limits.min) + " to " + std::to_string(limits.max);
  text += ", and " + std::to_string(queue.max) + " wait";
  if (queue.timeout != kForever) text += " for at most " + duration_text(queue.timeout);
  return text;
}

// Returns "2.5 %", for example.
std::string percent(double part) {
  const auto tenths = std::lround(part * 1000);
  auto text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + " %";
}

// Returns the failures that open a circuit breaker, which then refuses requests: "at 5 failures in
// a row"; or, for a breaker that judges the share of failures in a window of time, "at 10 failures
// of 20 in 10 s", with the number of slow responses that also opens it. The numbers are those for
// the smallest number of requests that it judges, `min_requests`.
std::string opens_text(const BreakerPolicy& breaker) {
  const auto in_a_row = "at " + std::to_string(breaker.failures) +
                        (breaker.failures == 1 ? " failure" : " failures in a row");
  if (breaker.kind == BreakerPolicy::Kind::Consecutive) return in_a_row;
  const auto within =
      " of " + std::to_string(breaker.min_requests) + " in " + duration_text(breaker.window);
  const auto failures = std::ceil(breaker.failure_ratio * breaker.min_requests);
  auto text = "at " + std::to_string(static_cast<int>(failures)) + " failures" + within;
  if (breaker.slow_after != kForever) {
    const auto slow = std::ceil(breaker.slow_ratio * breaker.min_requests);
    text += ", or " + std::to_string(static_cast<int>(slow)) + within + " that take over " +
            duration_text(breaker.slow_after);
  }
  return breaker.failures > 0 ? text + ", or " + in_a_row : text;
}

// Describes what opens and closes a breaker, for how long, and which sends it refuses.
std::string breaker_text(const BreakerPolicy& breaker) {
  if (breaker.kind == BreakerPolicy::Kind::Share) {
    return "refuses a share of the sends while fewer than " + percent(1 / breaker.k) +
           " of those in " + duration_text(breaker.share_window) + " succeed";
  }
  const auto first = delay_range(breaker.open_for, /*retry=*/1).mean;
  auto text = "opens " + opens_text(breaker) + ", the first time for " + duration_text(first) +
              "; " + std::to_string(breaker.probes) +
              (breaker.probes == 1 ? " success closes it" : " successes close it");
  if (breaker.applies_to == BreakerPolicy::AppliesTo::Retries) text += "; applies only to retries";
  if (breaker.when_open == BreakerPolicy::WhenOpen::Wait) text += "; while it is open, calls wait";
  return breaker.dry_run ? text + "; a dry run: nothing is refused" : text;
}

GuardScope scope_of(const BudgetPolicy& budget) {
  switch (budget.scope) {
    case BudgetPolicy::Scope::Host: return GuardScope::Host;
    case BudgetPolicy::Scope::Endpoint: return GuardScope::Endpoint;
    case BudgetPolicy::Scope::Policy: return GuardScope::Policy;
  }
  return GuardScope::Host;
}

// Describes a budget that limits the retries and hedges in flight to the larger of `min` and a
// share of the calls in flight: "10 retries and hedges in flight at once, from 110 calls in flight
// on 10 % of them; …". `ratio` is that share in thousandths.
std::string concurrent_text(const BudgetPolicy& budget) {
  auto text = budget.min == 1 ? std::string("1 retry or hedge")
                              : std::to_string(budget.min) + " retries and hedges";
  text += " in flight at once";
  std::string until = "one has ended";
  if (budget.ratio > 0) {
    // The fewest calls whose share is more than `min`; the division rounds up.
    const auto calls = ((budget.min + std::int64_t{1}) * 1000 + budget.ratio - 1) / budget.ratio;
    text += ", from " + std::to_string(calls) + " calls in flight on " +
            percent(static_cast<double>(budget.ratio) / 1000) + " of them";
    until += " or there are more calls";
  }
  return text + "; the next is refused until " + until + "; each process counts its own";
}

// Returns the reason why the request is never hedged, or "".
std::string why_never_hedged(const HedgePolicy& hedge, const RetryPolicy& policy,
                             const Request& request) {
  const auto& methods = hedge.methods;
  if (!methods.empty() && std::ranges::find(methods, request.method()) == methods.end()) {
    return "none for " + request.method() + ": hedge.methods are " + join(methods, ", ");
  }
  const bool is_safe = request.repeatable() || !policy.idempotency_key.empty();
  if (policy.repeat == Repeat::Always || (policy.repeat == Repeat::Safe && is_safe)) return {};
  return "none for " + request.method() + ": executing it twice may do harm";
}

std::string hedge_delay_text(const HedgePolicy& hedge) {
  if (hedge.quantile == 0) return duration_text(hedge.after) + " (fixed)";
  auto text = "as long as " + percent(hedge.quantile) +
              " of the responses of the last 30 s took, " + duration_text(hedge.min) +
              " or more; none if that is greater than " + duration_text(hedge.max) +
              "; while there are fewer than " + std::to_string(hedge.min_samples) + " samples ";
  return text + (hedge.initial ? "after " + duration_text(*hedge.initial) : std::string("none"));
}

// Describes when a hedge sends an attempt a second time, and what limits that: "sends again if no
// response has begun after 200 ms (fixed); 1 for an attempt; the budget is 10 % of the calls of the
// last 10 s, so the first one needs 10 calls; max_attempts 3 counts it". If the policy never hedges
// this request, returns the reason for that instead.
std::string hedge_text(const HedgePolicy& hedge, const RetryPolicy& policy,
                       const Request& request) {
  if (auto reason = why_never_hedged(hedge, policy, request); !reason.empty()) return reason;
  auto text = "sends again if no response has begun after " + hedge_delay_text(hedge) + "; " +
              std::to_string(hedge.max_hedges) + " for an attempt";
  if (hedge.budget) {
    // A budget of 10 % allows one hedge for every 10 calls. Because 0.1 is not exact, the quotient
    // may be a little more than 10, which must not become 11. The library counts the calls of the
    // last 10 s; that time is not an option.
    constexpr double kRounding = 1e-9;
    const auto calls = static_cast<std::size_t>(std::ceil(1 / *hedge.budget - kRounding));
    text += "; the budget is " + percent(*hedge.budget) +
            " of the calls of the last 10 s, so the first one needs " + counted(calls, "call");
  } else {
    text += "; no budget of its own";  // only the budget for retries limits hedges
  }
  // Each hedge counts toward max_attempts, as if it were a retry.
  if (policy.max_attempts) {
    text += "; max_attempts " + std::to_string(*policy.max_attempts) + " counts it";
  }
  return text;
}

}  // namespace

// Returns a line for each part of the policy that can hold a request back or send it twice. In
// brackets, each line names the scope: the requests that share the state of this part. For example,
// "concurrency: 10 at once, and 5 wait (shared by https://api.example.com)".
std::string held_back_text(const ResolvedPolicy& resolved, const Request& request) {
  const auto& guards = resolved.policy->guards;
  std::string text;
  const auto add = [&](std::string_view part, const std::string& description, GuardScope scope) {
    text += std::string(part) + ": " + description + " (shared by " +
            printable(shared_by(scope, resolved, request)) + ")\n";
  };
  if (guards.breaker) add("breaker", breaker_text(*guards.breaker), guards.breaker->scope);
  if (guards.rate) {
    add("rate", rate_text(*guards.rate), guards.rate->scope);
    for (const auto& rate : guards.rate->further) add("rate", rate_text(rate), rate.scope);
  }
  if (guards.concurrency) {
    add("concurrency", slots_text(*guards.concurrency), guards.concurrency->scope);
  }
  // The other kinds of budgets do not limit how many sends are in flight at once.
  if (const auto& budget = resolved.policy->budget; budget.kind == BudgetPolicy::Kind::Concurrent) {
    add("budget", concurrent_text(budget), scope_of(budget));
  }
  if (const auto& hedge = resolved.policy->hedge) {
    add("hedge", hedge_text(*hedge, *resolved.policy, request), hedge->scope);
  }
  return text;
}

std::string near_misses_text(const std::vector<PolicySet::Candidate>& misses, std::size_t most,
                             std::string_view hint) {
  std::string text;
  const auto shown = std::min(misses.size(), most);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& miss = misses[i];
    text += "near: " + miss.resolved->endpoint + " (" + std::string(miss.source) +
            "): " + miss.why_lost + '\n';
  }
  if (shown < misses.size()) {
    text += "near: " + std::to_string(misses.size() - shown) + " more" + std::string(hint) + '\n';
  }
  return text;
}

}  // namespace httpretry::cli
