#include "hedge_scopes.hpp"

namespace httpretry::guard {

void HedgeScope::begin_call(Time now) {
  const std::lock_guard lock(mutex_);
  state_.begin_call(now);
}

HedgeDelay HedgeScope::delay(const HedgePolicy& policy, Time now) {
  const std::lock_guard lock(mutex_);
  return state_.delay(policy, now);
}

std::optional<Duration> HedgeScope::median(Time now) {
  const std::lock_guard lock(mutex_);
  return state_.median(now);
}

void HedgeScope::add_sample(Duration to_headers, Time now) {
  const std::lock_guard lock(mutex_);
  state_.add_sample(to_headers, now);
}

void HedgeScope::throttle(Time until) {
  const std::lock_guard lock(mutex_);
  state_.throttle(until);
}

bool HedgeScope::throttled(Time now) {
  const std::lock_guard lock(mutex_);
  return state_.throttled(now);
}

bool HedgeScope::take(const HedgePolicy& policy, Time now) {
  const std::lock_guard lock(mutex_);
  return state_.take(policy, now);
}

void HedgeScope::give_back(const HedgePolicy& policy, Time now) {
  if (!policy.budget) return;
  const std::lock_guard lock(mutex_);
  state_.give_back(now);
}

bool HedgeScope::idle(Time now) {
  const std::lock_guard lock(mutex_);
  return state_.idle(now);
}

void HedgeScope::reset() {
  const std::lock_guard lock(mutex_);
  state_ = HedgeState();
}

ScopeState HedgeScope::facts(Time now) {
  const std::lock_guard lock(mutex_);
  ScopeState facts;
  facts.calls = state_.budget().calls(now);
  facts.hedges = state_.budget().hedges(now);
  facts.samples = state_.samples(now);
  if (state_.throttled(now)) facts.until = state_.throttled_until();
  return facts;
}

std::shared_ptr<HedgeScope> HedgeScopes::at(const std::string& key, Time now) {
  const std::lock_guard lock(mutex_);
  return scopes_.at(key, now);
}

bool HedgeScopes::reset(const std::string& key) {
  const std::lock_guard lock(mutex_);
  auto* const scope = scopes_.find(key);
  if (scope != nullptr) scope->reset();
  return scope != nullptr;
}

std::vector<ScopeState> HedgeScopes::states(std::string_view prefix, Time now) const {
  const std::lock_guard lock(mutex_);
  std::vector<ScopeState> states;
  scopes_.each(prefix, [&](const std::string& key, HedgeScope& scope) {
    states.push_back(scope.facts(now));
    states.back().key = key;
  });
  return states;
}

}  // namespace httpretry::guard
