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
  if (const auto found = scopes_.find(key); found != scopes_.end()) return found->second;
  if (scopes_.size() >= kMaxScopes) make_room(now);
  return scopes_.emplace(key, std::make_shared<HedgeScope>()).first->second;
}

bool HedgeScopes::reset(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = scopes_.find(key);
  if (found == scopes_.end()) return false;
  found->second->reset();
  return true;
}

std::vector<ScopeState> HedgeScopes::states(std::string_view prefix, Time now) const {
  const std::lock_guard lock(mutex_);
  std::vector<ScopeState> states;
  for (const auto& [key, scope] : scopes_) {
    if (!key.starts_with(prefix)) continue;
    states.push_back(scope->facts(now));
    states.back().key = key;
  }
  return states;
}

void HedgeScopes::make_room(Time now) {
  const auto drop = [&](bool also_changed) {
    std::erase_if(scopes_, [&](const auto& entry) {
      return entry.second.use_count() == 1 && (also_changed || entry.second->idle(now));
    });
  };
  drop(false);
  if (scopes_.size() > kMaxScopes / 2) drop(true);
}

}  // namespace httpretry::guard
