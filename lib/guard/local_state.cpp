#include "local_limits.hpp"

#include <httpretry/guard/local_state.hpp>

#include <algorithm>
#include <utility>

namespace httpretry {
namespace guard {

bool LocalState::Scope::idle(Time now) const {
  return !paused && under_way == 0 && waiting == 0 && rate.idle(now) && slots.idle() &&
         (!circuit || circuit->breaker.idle(*circuit->policy->breaker, now));
}

std::shared_ptr<SendLimits> LocalState::limits(LimitKeys keys, Time now) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Limits>(shared_from_this(), std::move(keys), now);
}

std::shared_ptr<RetryAccount> LocalState::account(const std::string& key,
                                                  const BudgetPolicy& policy, Time now) {
  return budgets_.at(key, policy, now);
}

std::shared_ptr<HedgeAccount> LocalState::hedges(const std::string& key, Time now) {
  return hedges_.at(key, now);
}

std::shared_ptr<LocalState::Scope> LocalState::scope_of(const std::string& key, Time now) {
  if (const auto found = scopes_.find(key); found != scopes_.end()) return found->second;
  if (scopes_.size() >= room_at_) make_room(now);
  const auto made = scopes_.emplace(key, std::make_shared<Scope>()).first;
  made->second->key = &made->first;
  return made->second;
}

void LocalState::make_room(Time now) {
  const auto drop = [&](bool also_changed) {
    std::erase_if(scopes_, [&](const auto& entry) {
      const auto& scope = *entry.second;
      return entry.second.use_count() == 1 && !scope.paused && (also_changed || scope.idle(now));
    });
  };
  drop(false);
  if (scopes_.size() > kMaxScopes / 2) drop(true);
  room_at_ = std::max(kMaxScopes, 2 * scopes_.size());
}

void LocalState::begin_pause(Scope& scope, Time until) {
  scope.pause.begin(until);
  if (std::exchange(scope.paused, true)) return;
  paused_.push_back(&scope);
  set_pauses(paused_.size());
}

void LocalState::end_pauses(Time now, StateChanges& changes) {
  std::erase_if(paused_, [&](Scope* scope) {
    if (now < scope->pause.until() || scope->waiting > 0 || scope->under_way > 0) return false;
    scope->pause.end_ramp();
    scope->paused = false;
    if (!scope->circuit) changes.resumed.emplace_back(without_kind(*scope->key));
    return true;
  });
  set_pauses(paused_.size());
}

std::size_t LocalState::scopes() const {
  const std::lock_guard lock(mutex_);
  return scopes_.size();
}

std::vector<ScopeState> LocalState::states(std::string_view prefix, Time now) const {
  auto states = hedges_.states(prefix, now);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, scope] : scopes_) {
    if (!key.starts_with(prefix)) continue;
    auto& state = states.emplace_back();
    state.key = key;
    state.waiting = scope->waiting;
    state.in_flight = scope->slots.used();
    if (scope->paused) state.until = scope->pause.until();
    if (key.starts_with("rate ")) state.until = scope->rate.full_at();
    if (!scope->circuit) continue;
    const auto& circuit = *scope->circuit;
    state.circuit = circuit.breaker.state();
    const bool closed = state.circuit == Circuit::Closed;
    const auto counts =
        closed ? circuit.breaker.counts(*circuit.policy->breaker, now) : circuit.breaker.tripped();
    state.failed = counts.failed();
    state.total = counts.all;
    if (state.circuit == Circuit::Open) state.until = circuit.breaker.until();
  }
  std::sort(states.begin(), states.end(),
            [](const ScopeState& a, const ScopeState& b) { return a.key < b.key; });
  return states;
}

bool LocalState::change(std::string_view key, Time now, const std::function<bool(Scope&)>& how) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = scopes_.find(std::string(key));
    if (found == scopes_.end() || !how(*found->second)) return false;
  }
  tell_changed(now);
  return true;
}

bool LocalState::reset(std::string_view key, Time now) {
  if (key.starts_with("hedge ")) return hedges_.reset(std::string(key));
  return change(key, now, [](Scope& scope) {
    scope.pause.end();
    scope.rate = Rate();
    scope.slots.forget();
    if (scope.circuit) scope.circuit->breaker.close();
    return true;
  });
}

bool LocalState::open_circuit(std::string_view key, Time until, Time now) {
  return change(key, now, [&](Scope& scope) {
    if (!scope.circuit) return false;
    scope.circuit->breaker.open_until(until);
    scope.circuit->why = "it was opened by the program";
    return true;
  });
}

bool LocalState::close_circuit(std::string_view key, Time now) {
  return change(key, now, [](Scope& scope) {
    if (scope.circuit) scope.circuit->breaker.close();
    return scope.circuit != nullptr;
  });
}

}  // namespace guard

std::shared_ptr<SharedState> local_state() { return std::make_shared<guard::LocalState>(); }

}  // namespace httpretry
