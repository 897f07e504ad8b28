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

std::shared_ptr<HedgeScope> HedgeScopes::at(const std::string& key, Time now) {
  const std::lock_guard lock(mutex_);
  if (const auto found = scopes_.find(key); found != scopes_.end()) return found->second;
  if (scopes_.size() >= kMaxScopes) make_room(now);
  return scopes_.emplace(key, std::make_shared<HedgeScope>()).first->second;
}

bool HedgeScopes::reset(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return scopes_.erase(key) > 0;
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
