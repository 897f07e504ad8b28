#include "guard_numbers.hpp"

#include <new>

namespace httpretry::telemetry {

// Calls `change(scope)` with the numbers of a scope, which is added if it is new, or with those of
// `_other` if there are too many scopes.
template <class Change>
void GuardNumbers::edit(std::string_view key, const Change& change) noexcept {
  const std::lock_guard lock(mutex_);
  auto found = scopes_.find(key);
  if (found == scopes_.end()) {
    const bool may_add = scopes_.size() < most_;
    try {
      found = scopes_.try_emplace(may_add ? std::string(key) : "_other").first;
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  change(found->second);
  if (found->first != "_other") return;
  auto& other = found->second;  // mixes many scopes, so only its counts make sense
  other.circuit.reset();
  other.paused_until.reset();
  other.limit.reset();
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
