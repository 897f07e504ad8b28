// Policies whose waits are easy to foresee.
#pragma once

#include <httpretry/retry/retry_policy.hpp>

#include <cstdint>

namespace httpretry {

inline Backoff doubling(Duration initial) {
  Backoff backoff;
  backoff.jitter = Backoff::Jitter::None;
  backoff.initial = initial;
  return backoff;
}

// Four attempts, waits of 1, 2, 4 s, and no budget.
inline RetryPolicy steady_policy() {
  RetryPolicy policy;
  policy.max_attempts = 4;
  policy.backoff = doubling(std::chrono::seconds(1));
  policy.throttle_backoff.reset();
  policy.server_delay.combine = ServerDelayPolicy::Combine::Max;
  policy.budget = BudgetPolicy();
  return policy;
}

// The same with a budget of `capacity` tokens, of which a retry costs ten.
inline RetryPolicy thrifty_policy(std::int64_t capacity,
                                  BudgetPolicy::Scope scope = BudgetPolicy::Scope::Host) {
  auto policy = steady_policy();
  policy.budget.kind = BudgetPolicy::Kind::Tokens;
  policy.budget.scope = scope;
  policy.budget.capacity = capacity * 1000;
  policy.budget.retry_cost = policy.budget.throttle_cost = policy.budget.timeout_cost = 10'000;
  policy.budget.refill = 1'000;
  return policy;
}

}  // namespace httpretry
