#include "fleet_limits.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {

FleetState::Limits::Limits(const std::shared_ptr<FleetState>& state, LimitKeys keys, Time now)
    : guard::Limits(state, std::move(keys)),
      fleet_(*state),
      rate_scope_(use(keys_.rate, now)),
      slots_scope_(use(keys_.slots, now)),
      breaker_scope_(use(keys_.breaker, now)) {
  for (std::size_t which = 0; which < keys_.pauses.size(); ++which) {
    if (const auto scope = use(keys_.pauses[which], now)) pauses_[which] = pause_of(scope);
  }
  if (rate_scope_) rate_ = {rate_scope_, &rate_scope_->rate};
  if (slots_scope_) slots_ = {slots_scope_, &slots_scope_->slots};
  if (!breaker_scope_) return;
  auto& circuit = breaker_scope_->circuit;
  if (!circuit) circuit = std::make_unique<CircuitState>();
  breaker_ = {breaker_scope_, &circuit->own};
  if (keys_.policy->breaker->when_open == BreakerPolicy::WhenOpen::Wait) {
    pauses_[kRamp] = pause_of(breaker_scope_);
  }
}

std::shared_ptr<FleetState::Scope> FleetState::Limits::use(const std::string& key, Time now) {
  if (key.empty()) return nullptr;
  auto scope = fleet_.scope_of(key, now);
  scope->policy = keys_.policy;
  return scope;
}

const GuardPolicy& FleetState::Limits::own_policy() const {
  const int workers = fleet_.remote_.workers();
  if (std::exchange(workers_, workers) != workers) share_ = share_of(*keys_.policy, workers);
  return share_;
}

// --- what holds back a send ---

guard::Hold FleetState::Limits::held_by_circuit(Time now) const {
  if (!fleet_.is_circuit_shared(*breaker_scope_, now)) return Own::held_by_circuit(now);
  return breaker_scope_->circuit->votes.hold(now);
}

bool FleetState::Limits::is_rate_shared(Time now) const {
  // Tokens that this process already has can be used even after a query has failed.
  const auto is_usable = [&](const auto& tokens) {
    return (tokens.has_some() && fleet_.remote_.up()) || tokens.query.can_use(fleet_.remote_, now);
  };
  return reserves_per_send(rate_policy()) ? is_usable(rate_scope_->reserved)
                                          : is_usable(rate_scope_->tokens);
}

// Returns no hold if the send may use tokens of the rate now. Otherwise returns when it may check
// again: at the time from which the rate allows it (Rate), or a few milliseconds later, because the
// server has not replied with tokens yet (SharedState). The Redis server gives out the tokens, so
// that all processes together keep the rate. While the server is away, decides by this process's
// own share of the rate.
guard::Hold FleetState::Limits::held_by_rate(const SendAsk& ask) const {
  const auto now = ask.now;
  if (!is_rate_shared(now)) return Own::held_by_rate(ask);
  if (reserves_per_send(rate_policy())) {
    // The policy has several rates, or sends have costs. The server reserves the tokens of each
    // send.
    const auto& reserved = rate_scope_->reserved;
    if (!reserved.cover(rate_policy(), ask.cost)) {
      return {QueuedBy::SharedState, now + kRecheckAfter};
    }
    if (reserved.ready_at() > now) return {QueuedBy::Rate, reserved.ready_at()};
    return {};
  }
  // This process has taken tokens in advance, and any send may use them. If it has none left,
  // ready_at() is the time that the server has set for the next query.
  const auto& tokens = rate_scope_->tokens;
  const auto ready_at = tokens.ready_at();
  if (ready_at > now) return {QueuedBy::Rate, ready_at};
  if (!tokens.has_some()) return {QueuedBy::SharedState, now + kRecheckAfter};
  return {};
}

// Returns no hold if this process has a free slot: the Redis server grants it `held.granted` of the
// sends that all processes together may have in flight. Otherwise returns what the send waits for:
// the end of another send (kNever), the time at which this process may query for more slots, or the
// reply to that query (SharedState). While the server is away, decides by this process's own share.
guard::Hold FleetState::Limits::held_by_slots(const SendAsk& ask) const {
  const bool server_decides = slots_scope_->held.query.can_use(fleet_.remote_, ask.now);
  if (!server_decides) return Own::held_by_slots(ask);
  // A send of low priority leaves a fifth of the slots to others, if others wait. `waiting`
  // includes this send if it waits already.
  const bool leaves_some_free = ask.priority == Priority::Low && slots_->waiting > 1;
  const auto& policy = *keys_.policy->concurrency;
  const auto& held = slots_scope_->held;
  const auto& slots = slots_->machine;
  if (held.granted > 0 && slots.free(with_max(policy, held.granted), leaves_some_free)) return {};
  // More slots would not help. Either this process has all that exist, or some of its slots are
  // free, but not for this send: they are for sends of higher priority, or above this process's own
  // limit, which adapts to how sends end.
  if (held.granted >= policy.max || slots.used() < held.granted) {
    return {QueuedBy::Concurrency, kNever};
  }
  // Other processes do not report the ends of their sends, so this one queries again.
  if (ask.now < held.may_ask_at && !held.query.is_pending()) {
    return {QueuedBy::Concurrency, held.may_ask_at};
  }
  return {QueuedBy::SharedState, ask.now + kRecheckAfter};
}

// Called after enter() has decided about a send. `held_by` is the limit that holds the send back,
// or Nothing if it goes out. A send that goes out has taken its tokens and its slot already.
// Queries the server in the background: for the state of the circuit, for tokens that this send or
// the next ones need, and for a slot if the send may lack one.
void FleetState::Limits::on_asked(const SendAsk& ask, QueuedBy held_by) {
  const bool goes_out = held_by == QueuedBy::Nothing;
  if (slots_ && goes_out) {
    // At the next tick, renew_tokens_and_slots() keeps as many slots as were in use at once since
    // the last tick, unless other processes want slots.
    slots_scope_->most_used = std::max(slots_scope_->most_used, slots_->machine.used());
  }
  if (!fleet_.remote_.up()) return;
  // enter() checks the pauses with their ramps, the circuit, the rate and the slots, in this order.
  // While one of them holds the send back, the send does not need the later ones yet.
  if (held_by == QueuedBy::Pause || held_by == QueuedBy::Ramp) return;
  if (uses_breaker(ask)) query_circuit(ask.now);
  if (held_by == QueuedBy::Circuit) return;
  if (rate_ && reserves_per_send(rate_policy())) {
    // Tokens are reserved for this one send, which has them already if it goes out.
    if (!goes_out) fleet_.reserve_tokens(rate_scope_, rate_policy(), ask.cost, ask.now);
  } else if (rate_) {
    // Tokens are taken ahead for any send, so the query may replace what this one has used. The
    // send joins or leaves the queue only after this call. So `rate_->waiting` may still include
    // it although it goes out, or not yet include it although it waits.
    const int waiting = goes_out ? std::max(rate_->waiting - 1, 0) : std::max(rate_->waiting, 1);
    fleet_.request_tokens(rate_scope_, waiting, ask.now);
  }
  // SharedState does not say which limit waits for a reply. It may be the slots.
  const bool may_lack_slot = held_by == QueuedBy::Concurrency || held_by == QueuedBy::SharedState;
  if (slots_ && may_lack_slot) query_slots(ask.now);
}

// Requests the state of the circuit, and a probe if the circuit is open, unless the last reply
// still decides or a query has no reply yet.
void FleetState::Limits::query_circuit(Time now) {
  if (!fleet_.is_circuit_shared(*breaker_scope_, now)) return;
  const auto& votes = breaker_scope_->circuit->votes;
  if (votes.hold(now).by == QueuedBy::SharedState && !votes.query.is_pending()) {
    fleet_.send_votes(breaker_scope_, FleetState::Probe::Wanted, now);
  }
}

// Requests slots for the sends in flight and those that wait, but no more than the policy allows.
void FleetState::Limits::query_slots(Time now) {
  const int wanted = std::min(slots_->machine.used() + std::max(slots_->waiting, 1),
                              slots_->machine.limit(*keys_.policy->concurrency));
  if (slots_scope_->held.should_query(wanted, now)) {
    fleet_.request_slots(slots_scope_, wanted, now);
  }
}

// --- a send ---

// Notes in the grant whether the breaker counts the result of the send (`votes`), and whether the
// send is a probe of an open circuit. Returns true, because held_by_circuit() has let the send
// pass.
bool FleetState::Limits::ask_breaker(const SendAsk& ask, SendGrant& grant, StateChanges& changes) {
  if (!fleet_.is_circuit_shared(*breaker_scope_, ask.now)) {
    return Own::ask_breaker(ask, grant, changes);
  }
  auto& votes = breaker_scope_->circuit->votes;
  const bool applies = uses_breaker(ask);  // the policy may apply it only to retries
  // With `dry_run`, a send goes out although the circuit holds it, and does not vote.
  grant.votes = !applies || votes.hold(ask.now).by == QueuedBy::Nothing;
  grant.generation = votes.generation();
  if (grant.votes && applies) grant.probe = votes.take_probe();
  return true;
}

void FleetState::Limits::take_tokens(const SendAsk& ask) {
  // The remote state may have come back since held_by_rate decided by this process's own rate.
  if (!is_rate_shared(ask.now)) return Own::take_tokens(ask);
  auto& reserved = rate_scope_->reserved;
  if (reserves_per_send(rate_policy()) && reserved.cover(rate_policy(), ask.cost)) {
    return reserved.take(rate_policy(), ask.cost);
  }
  if (rate_scope_->tokens.has_some()) return rate_scope_->tokens.take(ask.now);
  Own::take_tokens(ask);
}

Time FleetState::Limits::token_at(const SendAsk& ask) const {
  if (!is_rate_shared(ask.now)) return Own::token_at(ask);
  // Only an estimate: tokens for the sends that wait are reserved later, one send after the other.
  if (reserves_per_send(rate_policy())) return rate_scope_->reserved.ready_at();
  return std::max(rate_scope_->tokens.ready_at(), ask.now) +
         guard::Rate::time_for(rate_policy(), rate_->waiting);
}

// Gives a slot back at once if other processes wait for it.
void FleetState::Limits::on_slot_freed(Time now) {
  const auto& held = slots_scope_->held;
  const int used = slots_->machine.used();
  if (held.contended && used < held.granted && held.query.can_use(fleet_.remote_, now)) {
    fleet_.request_slots(slots_scope_, used + slots_->waiting, now);
  }
}

void FleetState::Limits::release_breaker(const SendGrant& grant) {
  if (!CircuitVotes::is_shared(grant)) return Own::release_breaker(grant);
  breaker_scope_->circuit->votes.give_back(grant);
}

// Counts the result of a send for the breaker. Sends the counts to the other processes at once if
// they may open or close the circuit.
void FleetState::Limits::vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
                              StateChanges& changes) {
  if (!CircuitVotes::is_shared(grant)) return Own::vote(grant, end, now, random, changes);
  if (breaker_scope_->circuit->votes.vote(*keys_.policy->breaker, grant, end)) {
    fleet_.send_votes(breaker_scope_, FleetState::Probe::NotWanted, now);
  }
}

void FleetState::Limits::pause(std::size_t which, Time until, Time now) {
  Own::pause(which, until, now);
  // While the remote state is away, this sends nothing. Other processes pause when the server asks
  // them to.
  if (pauses_[which]) fleet_.remote_.pause(keys_.pauses[which], until - now);
}

// --- changes ---

ScopeState FleetState::Limits::circuit_now(Time now) const {
  return fleet_.circuit_now(*breaker_scope_, now);
}

// Called after this process's own breaker has changed.
void FleetState::Limits::report_circuit_change(Circuit from, Time now, StateChanges& changes) {
  auto& circuit = *breaker_scope_->circuit;
  circuit.changed_from.reset();
  if (circuit.own.machine.state() == Circuit::Open) circuit.why = changes.why;
  Own::report_circuit_change(from, now, changes);
}

// Reports a change of the shared circuit, which another process may have caused, to the observers
// of the next send.
void FleetState::Limits::report_remote_changes(Time now, StateChanges& changes) {
  if (!breaker_) return;
  auto& circuit = *breaker_scope_->circuit;
  const auto from = std::exchange(circuit.changed_from, {});
  const auto state = circuit_now(now).circuit;
  if (!from || state == from) return;  // no change, or it changed back
  changes.why = state == Circuit::Open       ? circuit.why
                : state == Circuit::HalfOpen ? "its open time has ended"
                                             : "the probes succeeded";
  Own::report_circuit_change(*from, now, changes);
}

}  // namespace httpretry::fleet
