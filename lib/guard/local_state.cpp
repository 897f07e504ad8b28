#include "local_state.hpp"

#include <httpretry/guard/local_state.hpp>

#include <algorithm>
#include <utility>

namespace httpretry {
namespace guard {

std::shared_ptr<SendLimits> LocalState::limits(LimitKeys keys, Time now) {
  // The state of that key; nullptr if it is empty.
  const auto at = [now](auto& states, const std::string& key) {
    return key.empty() ? nullptr : states.at(key, now);
  };
  const std::lock_guard lock(mutex_);
  auto limits = std::make_shared<Limits>(shared_from_this(), std::move(keys));
  const auto& used = limits->keys_;
  for (std::size_t which = 0; which < used.pauses.size(); ++which) {
    limits->pauses_[which] = at(pauses_, used.pauses[which]);
  }
  limits->rate_ = at(rates_, used.rate);
  limits->slots_ = at(slots_, used.slots);
  limits->breaker_ = at(breakers_, used.breaker);
  if (limits->breaker_ && used.policy->breaker->when_open == BreakerPolicy::WhenOpen::Wait) {
    const auto key = "ramp " + std::string(without_kind(used.breaker));
    limits->pauses_[Limits::kRamp] = at(pauses_, key);
  }
  return limits;
}

std::shared_ptr<RetryAccount> LocalState::account(const std::string& key,
                                                  const BudgetPolicy& policy, Time now) {
  return budgets_.at(key, policy, now);
}

std::shared_ptr<RetryAccount> LocalState::account_after(std::span<const ChangedBudget> changes,
                                                        const std::string& key,
                                                        const BudgetPolicy& policy, Time now) {
  return budgets_.at(key, policy, now, changes);
}

std::shared_ptr<HedgeAccount> LocalState::hedges(const std::string& key, Time now) {
  const std::lock_guard lock(mutex_);
  return hedges_.at(key, now);
}

std::vector<ScopeState> LocalState::states(std::string_view prefix, Time now) const {
  std::vector<ScopeState> states;
  const auto add = [&](const std::string& key, const auto& scope,
                       ScopeState state = {}) -> ScopeState& {
    state.key = key;
    state.waiting = scope.waiting;
    return states.emplace_back(std::move(state));
  };
  const std::lock_guard lock(mutex_);
  hedges_.each(prefix, [&](const std::string& key, HedgeState& hedges) {
    states.push_back(hedges.facts(key, now));
  });
  pauses_.each(prefix, [&](const std::string& key, const Scope<Pause>& scope) {
    auto& state = add(key, scope);
    if (!scope.machine.idle(now)) state.until = scope.machine.until();
  });
  rates_.each(prefix, [&](const std::string& key, const Scope<Rate>& scope) {
    add(key, scope).until = scope.machine.full_at();
  });
  slots_.each(prefix, [&](const std::string& key, const Scope<Slots>& scope) {
    add(key, scope).in_flight = scope.machine.used();
  });
  breakers_.each(prefix, [&](const std::string& key, const Scope<Breaker>& scope) {
    add(key, scope, circuit_of(scope.machine, now));
  });
  std::sort(states.begin(), states.end(),
            [](const ScopeState& a, const ScopeState& b) { return a.key < b.key; });
  return states;
}

// A key says what kind it is of, so only one of them has it.
bool LocalState::reset(std::string_view key, Time now) {
  return change(now, [&] {
    return breakers_.change(key, [](auto& scope) { scope.machine.close(); }) ||
           pauses_.change(key, [](auto& scope) { scope.machine.end(); }) ||
           rates_.change(key, [](auto& scope) { scope.machine = Rate(); }) ||
           slots_.change(key, [](auto& scope) { scope.machine.forget(); }) ||
           hedges_.change(key, [](HedgeState& hedges) { hedges.reset(); });
  });
}

bool LocalState::open_circuit(std::string_view key, Time until, Time now) {
  return change(now, [&] {
    return breakers_.change(key, [&](auto& scope) { scope.machine.open_until(until); });
  });
}

bool LocalState::close_circuit(std::string_view key, Time now) {
  return change(now,
                [&] { return breakers_.change(key, [](auto& scope) { scope.machine.close(); }); });
}

}  // namespace guard

std::shared_ptr<SharedState> local_state() { return std::make_shared<guard::LocalState>(); }

}  // namespace httpretry
