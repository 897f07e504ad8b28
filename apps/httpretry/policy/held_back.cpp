#include "policy/held_back.hpp"

#include "cli/text.hpp"

#include <cmath>

namespace httpretry::cli {
namespace {

constexpr int kAtOnce = 100;

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

std::string rate_text(const RatePolicy& rate) {
  auto text = std::to_string(rate.requests) + " in " + duration_text(rate.per) + ", burst " +
              std::to_string(rate.burst);
  if (rate.burst < kAtOnce) {
    const auto left = kAtOnce - rate.burst;
    text += ": " + std::to_string(kAtOnce) + " calls at once take " +
            duration_text(rate.per / rate.requests * left);
  }
  if (rate.max_wait != kForever) {
    text += "; who would wait longer than " + duration_text(rate.max_wait) + " is refused";
  }
  return text;
}

std::string slots_text(const ConcurrencyPolicy& limits) {
  const auto& queue = limits.queue;
  auto text = limits.kind == ConcurrencyPolicy::Kind::Fixed
                  ? std::to_string(limits.max) + " at once"
                  : std::to_string(limits.initial) + " at once to begin with, then " +
                        std::to_string(limits.min) + " to " + std::to_string(limits.max);
  text += ", and " + std::to_string(queue.max) + " wait";
  if (queue.timeout != kForever) text += " for at most " + duration_text(queue.timeout);
  return text;
}

std::string opens_text(const BreakerPolicy& breaker) {
  const auto in_a_row = "at " + std::to_string(breaker.failures) +
                        (breaker.failures == 1 ? " failure" : " failures in a row");
  if (breaker.kind == BreakerPolicy::Kind::Consecutive) return in_a_row;
  const auto failures = std::ceil(breaker.failure_ratio * breaker.min_requests);
  auto text = "at " + std::to_string(static_cast<int>(failures)) + " failures of " +
              std::to_string(breaker.min_requests) + " in " + duration_text(breaker.window);
  return breaker.failures > 0 ? text + ", or " + in_a_row : text;
}

std::string breaker_text(const BreakerPolicy& breaker) {
  if (breaker.kind == BreakerPolicy::Kind::Share) {
    return "refuses a share where of the sends in " + duration_text(breaker.share_window) +
           " too few succeed";
  }
  const auto first = delay_range(breaker.open_for, 1, {}).mean;
  auto text = "opens " + opens_text(breaker) + ", the first time for " + duration_text(first) +
              "; " + std::to_string(breaker.probes) +
              (breaker.probes == 1 ? " success closes it" : " successes close it");
  if (breaker.applies_to == BreakerPolicy::AppliesTo::Retries) text += "; only retries ask";
  return breaker.dry_run ? text + "; a dry run: nothing is refused" : text;
}

}  // namespace

std::string held_back_text(const ResolvedPolicy& resolved, const Request& request) {
  const auto& guards = resolved.policy->guards;
  std::string text;
  const auto add = [&](std::string_view what, const std::string& how, GuardScope scope) {
    text += std::string(what) + ": " + how + " (shared by " +
            printable(shared_by(scope, resolved, request)) + ")\n";
  };
  if (guards.breaker) add("breaker", breaker_text(*guards.breaker), guards.breaker->scope);
  if (guards.rate) add("rate", rate_text(*guards.rate), guards.rate->scope);
  if (guards.concurrency) {
    add("concurrency", slots_text(*guards.concurrency), guards.concurrency->scope);
  }
  return text;
}

}  // namespace httpretry::cli
