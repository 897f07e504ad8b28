// The part of FleetState that applies the snapshots of the remote state, which arrive with each
// tick.
#include "fleet_account.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {

// Applies the snapshot, lets each account refresh its balance, drops accounts that nothing uses,
// and wakes waiting sends.
void FleetState::on_snapshot(const RedisState::Snapshot& snapshot, Time now) {
  apply_snapshot(snapshot, now);
  {
    const std::lock_guard lock(accounts_mutex_);
    std::erase_if(accounts_, [&](const auto& entry) {
      entry.second->on_tick(now);
      return entry.second.use_count() == 1 && entry.second->is_unused(now);
    });
  }
  tell_changed(now);
}

// Brings the limits of this process to the state that a snapshot from the Redis server has: pauses,
// circuits, and the salt of the hashes in keys. A snapshot arrives several times a second. If the
// server does not reply (`snapshot.away`), this process continues with its own share of each limit.
void FleetState::apply_snapshot(const RedisState::Snapshot& snapshot, Time now) {
  const std::lock_guard lock(mutex_);
  // snapshot.change is the last time that the server went away or came back, and has a new number
  // each time. set_last_change() stores it for the observers of later calls.
  const bool went_away_or_came_back =
      std::exchange(last_remote_change_, snapshot.change.number) != snapshot.change.number;
  if (went_away_or_came_back) set_last_change(snapshot.change);
  if (snapshot.away) {
    // What the server granted does not count while it is away: the tokens, which allow sends under
    // a rate, and the slots, which allow sends in flight.
    for (const auto& [key, scope] : scopes_) {
      scope->tokens = {};
      scope->reserved = {};
      scope->held = {};
    }
  } else {
    // The keys of limits contain hashes of credentials. With the same salt, all processes have the
    // same hashes. 0: the reply has no salt.
    if (snapshot.salt != 0) set_salt(snapshot.salt);
    apply_pauses(snapshot, now);
    apply_circuits(snapshot, now);
    for (const auto& [key, scope] : scopes_) renew_tokens_and_slots(scope, now);
  }
  drop_unused_scopes(now);
}

// Begins the pauses that other processes have begun or extended. If there are very many, leaves out
// those of scopes that this process does not use: it notices them when it uses the scope.
void FleetState::apply_pauses(const RedisState::Snapshot& snapshot, Time now) {
  for (const auto& [key, until] : snapshot.pauses) {
    if (scopes_.size() >= kMostScopesOfOthers && !scopes_.contains(key)) continue;
    const auto scope = scope_of(key, now);
    // This process's own pauses come back, with ends that are later by the time of a reply.
    const auto known = later(scope->pause.machine.until(), std::chrono::milliseconds(100));
    if (until > now && until > known) {
      begin_pause(pause_of(scope), guard::without_kind(key), until);
    }
  }
}

// Applies the state of each circuit that is not closed. A circuit that this process saw open, and
// that is missing in the snapshot, has closed: a query without votes then gets its state.
void FleetState::apply_circuits(const RedisState::Snapshot& snapshot, Time now) {
  for (const auto& [key, scope] : scopes_) {
    if (!scope->circuit) continue;
    auto& votes = scope->circuit->votes;
    const auto found = std::find_if(snapshot.circuits.begin(), snapshot.circuits.end(),
                                    [&name = key](const auto& one) { return one.first == name; });
    const bool is_closed = found == snapshot.circuits.end();
    const auto state_before = votes.view().state;
    if (!is_closed && votes.update(found->second)) on_circuit_changed(scope, state_before, now);
    if (votes.query.is_pending()) continue;
    const bool closed_since = is_closed && votes.view().state != Circuit::Closed;
    if (closed_since || votes.has_votes()) send_votes(scope, Probe::NotWanted, now);
  }
}

// Gives back unused tokens and slots of a scope, requests those that sends wait for, and renews the
// lease of the slots in use.
void FleetState::renew_tokens_and_slots(const ScopePtr& scope, Time now) {
  give_back_tokens(*scope, scope->tokens.take_unused(now));
  give_back_reserved(scope, {scope->rate.waiting, scope->rate.waiting_cost}, now);
  if (scope->rate.waiting > 0 && !reserves_per_send(*scope->policy->rate)) {
    scope->tokens.forget_stale_reply(now);
    request_tokens(scope, scope->rate.waiting, now);
  }
  auto& held = scope->held;
  const int used = scope->slots.machine.used();
  if (held.granted == 0 && used == 0) return;  // there is no lease to renew
  // Keeps as many as were in use at once since the last tick, unless other processes want slots.
  const int wanted = std::max(used + scope->slots.waiting, held.contended ? 0 : scope->most_used);
  scope->most_used = used;
  if (!held.query.is_pending()) request_slots(scope, wanted, now);
}

void FleetState::drop_unused_scopes(Time now) {
  std::erase_if(scopes_, [&](const auto& entry) {
    auto& scope = *entry.second;
    if (entry.second.use_count() > 1) scope.last_used = now;
    return now - scope.last_used >= kDropUnusedAfter && !scope.tokens.has_some() &&
           !scope.reserved.has_some() && scope.held.granted == 0 &&
           (!scope.circuit || !scope.circuit->votes.has_votes());
  });
}

}  // namespace httpretry::fleet
