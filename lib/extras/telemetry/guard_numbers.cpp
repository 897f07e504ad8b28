#include "guard_numbers.hpp"

namespace httpretry::telemetry {

template <class Change>
void GuardNumbers::edit(std::string_view key, const Change& change) {
  const std::lock_guard lock(mutex_);
  auto found = scopes_.find(key);
  if (found == scopes_.end()) {
    const bool room = scopes_.size() < most_;
    found = scopes_.try_emplace(room ? std::string(key) : "_other").first;
  }
  change(found->second);
  if (found->first != "_other") return;
  auto& other = found->second;  // mixes many scopes, so only its counts make sense
  other.circuit.reset();
  other.paused_until.reset();
  other.limit.reset();
}

void GuardNumbers::changed(const CircuitChange& change) {
  edit(change.key, [&](ScopeNumbers& scope) {
    scope.circuit = change.to;
    ++scope.changes.at(static_cast<std::size_t>(change.to));
  });
}

void GuardNumbers::changed(const LimitChange& change) {
  edit(change.key, [&](ScopeNumbers& scope) { scope.limit = change.to; });
}

void GuardNumbers::paused(std::string_view key, WallTime until) {
  edit(key, [&](ScopeNumbers& scope) { scope.paused_until = until; });
}

void GuardNumbers::resumed(std::string_view key) {
  edit(key, [](ScopeNumbers& scope) { scope.paused_until = WallTime(); });
}

GuardNumbers::Scopes GuardNumbers::scopes() const {
  const std::lock_guard lock(mutex_);
  return scopes_;
}

}  // namespace httpretry::telemetry
