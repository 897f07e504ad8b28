#include "guard_numbers.hpp"

#include <new>

namespace httpretry::telemetry {

// Calls `change(scope)` with the states and counts of the scope `key`. A scope is the set of
// requests that share a guard, such as a circuit breaker. Adds the scope if it is new. Beyond
// `max_scopes_` scopes, all new ones share the entry `_other`, which limits the memory. If memory
// runs out, `change` is not called.
template <class Change>
void GuardNumbers::edit(std::string_view key, const Change& change) noexcept {
  constexpr const char* kOther = "_other";
  const std::lock_guard lock(mutex_);
  auto found = scopes_.find(key);
  if (found == scopes_.end()) {
    const bool may_add = scopes_.size() < max_scopes_;
    try {
      found = scopes_.try_emplace(may_add ? std::string(key) : kOther).first;
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  auto& scope = found->second;
  change(scope);
  if (found->first != kOther) return;
  // Many scopes share this entry. Counts of events add up, but a state would be that of the scope
  // that changed last.
  scope.circuit.reset();
  scope.paused_until.reset();
  scope.limit.reset();
}

void GuardNumbers::changed(const CircuitChange& change) noexcept {
  edit(change.key, [&](ScopeNumbers& scope) {
    scope.circuit = change.to;
    ++scope.changes.at(static_cast<std::size_t>(change.to));
  });
}

void GuardNumbers::changed(const LimitChange& change) noexcept {
  edit(change.key, [&](ScopeNumbers& scope) { scope.limit = change.to; });
}

void GuardNumbers::paused(std::string_view key, WallTime until) noexcept {
  edit(key, [&](ScopeNumbers& scope) { scope.paused_until = until; });
}

void GuardNumbers::resumed(std::string_view key) noexcept {
  edit(key, [](ScopeNumbers& scope) { scope.paused_until = WallTime(); });
}

GuardNumbers::Scopes GuardNumbers::scopes() const {
  const std::lock_guard lock(mutex_);
  return scopes_;
}

}  // namespace httpretry::telemetry
