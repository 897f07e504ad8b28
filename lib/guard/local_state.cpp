#include "local_limits.hpp"

#include <httpretry/guard/local_state.hpp>

#include <algorithm>
#include <utility>

namespace httpretry {
namespace guard {

std::shared_ptr<SendLimits> LocalState::limits(LimitKeys keys, Time now) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Limits>(shared_from_this(), std::move(keys), now);
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
  return hedges_.at(key, now);
}

void LocalState::begin_pause(const std::shared_ptr<Scope<Pause>>& scope, std::string_view key,
                             Time until) {
  scope->machine.begin(until);
  const bool known = std::any_of(paused_.begin(), paused_.end(),
                                 [&](const Paused& one) { return one.scope == scope; });
  if (known) return;
  paused_.push_back({std::string(key), scope});
  set_pauses(paused_.size());
}

void LocalState::end_pauses(Time now, StateChanges& changes) {
  std::erase_if(paused_, [&](const Paused& one) {
    auto& scope = *one.scope;
    if (!scope.machine.ramp_used(now) || scope.waiting > 0 || scope.under_way > 0) return false;
    scope.machine.end_ramp();
    if (!one.key.empty()) changes.resumed.push_back(one.key);
    return true;
  });
  set_pauses(paused_.size());
}

std::vector<ScopeState> LocalState::states(std::string_view prefix, Time now) const {
  auto states = hedges_.states(prefix, now);
  const auto add = [&](const std::string& key, const auto& scope) -> ScopeState& {
    auto& state = states.emplace_back();
    state.key = key;
    state.waiting = scope.waiting;
    return state;
  };
  const std::lock_guard lock(mutex_);
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
    auto& state = add(key, scope);
    const auto counts = scope.machine.counts(now);
    state.circuit = scope.machine.state();
    state.failed = counts.failed();
    state.total = counts.all;
    if (state.circuit == Circuit::Open) state.until = scope.machine.until();
  });
  std::sort(states.begin(), states.end(),
            [](const ScopeState& a, const ScopeState& b) { return a.key < b.key; });
  return states;
}

bool LocalState::change(Time now, const std::function<bool()>& how) {
  {
    const std::lock_guard lock(mutex_);
    if (!how()) return false;
  }
  tell_changed(now);
  return true;
}

// A key says what kind it is of, so only one of them has it.
bool LocalState::reset(std::string_view key, Time now) {
  if (hedges_.reset(std::string(key))) return true;
  return change(now, [&] {
    auto* const pause = pauses_.find(key);
    auto* const rate = rates_.find(key);
    auto* const slots = slots_.find(key);
    auto* const breaker = breakers_.find(key);
    if (pause != nullptr) pause->machine.end();
    if (rate != nullptr) rate->machine = Rate();
    if (slots != nullptr) slots->machine.forget();
    if (breaker != nullptr) breaker->machine.close();
    return pause != nullptr || rate != nullptr || slots != nullptr || breaker != nullptr;
  });
}

bool LocalState::open_circuit(std::string_view key, Time until, Time now) {
  return change(now, [&] {
    auto* const breaker = breakers_.find(key);
    if (breaker != nullptr) breaker->machine.open_until(until);
    return breaker != nullptr;
  });
}

bool LocalState::close_circuit(std::string_view key, Time now) {
  return change(now, [&] {
    auto* const breaker = breakers_.find(key);
    if (breaker != nullptr) breaker->machine.close();
    return breaker != nullptr;
  });
}

}  // namespace guard

std::shared_ptr<SharedState> local_state() { return std::make_shared<guard::LocalState>(); }

}  // namespace httpretry
