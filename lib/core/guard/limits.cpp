#include "lib/core/guard/detail/limits.hpp"

#include "lib/core/base/saturating.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace httpretry::guard {
namespace {

// Returns nullopt for kNever. Saturates.
std::optional<WallTime> wall_time(Time when, Time now, WallTime wall_now) {
  if (when == kNever) return std::nullopt;
  return saturating::plus(wall_now, saturating::between(now, when));
}

}  // namespace

ScopeState detail::circuit_of(const Breaker& breaker, Time now) {
  const auto counts = breaker.counts(now);
  ScopeState state;
  state.circuit = breaker.state();
  state.failed = counts.failed();
  state.total = counts.all;
  if (state.circuit == Circuit::Open) state.until = breaker.until();
  return state;
}

// --- LimitState ---

void LimitState::begin_pause(const Pauses& scope, std::string_view key, Time until) {
  scope->machine.begin(until);
  const bool already_paused = std::any_of(paused_.begin(), paused_.end(),
                                          [&](const Paused& one) { return one.scope == scope; });
  if (already_paused) return;
  paused_.push_back({std::string(key), scope});
  set_pauses(paused_.size());
}

// Removes the pauses that are over and whose ramps (the slow start after a pause) have been used,
// once no send waits for them or is in flight under them. Adds their keys to `changes`.
void LimitState::end_pauses(Time now, StateChanges& changes) {
  if (paused_.empty()) return;
  std::erase_if(paused_, [&](const Paused& one) {
    auto& scope = *one.scope;
    if (!scope.machine.ramp_used(now) || scope.waiting > 0 || scope.in_flight > 0) return false;
    scope.machine.end_ramp();
    if (!one.key.empty()) changes.resumed.push_back(one.key);
    return true;
  });
  set_pauses(paused_.size());
}

bool LimitState::change(Time now, const std::function<bool()>& how) {
  {
    const std::lock_guard lock(mutex_);
    if (!how()) return false;
  }
  tell_changed(now);
  return true;
}

// --- the limits of a send ---

const PausePolicy& Limits::pause_policy(std::size_t which) const {
  static const PausePolicy ramp;
  return which == kRamp ? ramp : keys_.policy->pause;
}

bool Limits::uses_breaker(const SendAsk& ask) const {
  return breaker_ &&
         (ask.is_retry || keys_.policy->breaker->applies_to == BreakerPolicy::AppliesTo::All);
}

// Returns the pause that holds a send back, or its ramp after it is over.
Hold Limits::held_by_pause(Time now) const {
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    const auto* const scope = pauses_[which].get();
    if (scope == nullptr || scope->machine.allows(pause_policy(which), now)) continue;
    const bool over = now >= scope->machine.until();
    return {over ? QueuedBy::Ramp : QueuedBy::Pause, scope->machine.next_change(now)};
  }
  return {};
}

Hold Limits::held_by_circuit(Time now) const {
  const auto until = breaker_->machine.held_until(*own_policy().breaker, now);
  return until > now ? Hold{QueuedBy::Circuit, until} : Hold{};
}

Hold Limits::held_by_rate(const SendAsk& ask) const {
  const auto ready = rate_->machine.ready_at(*own_policy().rate, ask.cost);
  return ready > ask.now ? Hold{QueuedBy::Rate, ready} : Hold{};
}

Hold Limits::held_by_slots(const SendAsk& ask) const {
  // Sends of low priority leave some slots to others, if others wait. A waiting send counts itself.
  const bool low = ask.priority == Priority::Low && slots_->waiting > 1;
  const bool free = slots_->machine.free(*own_policy().concurrency, low);
  return free ? Hold{} : Hold{.by = QueuedBy::Concurrency, .until = kNever};
}

// Finds the first limit, in the order pause, circuit, rate, slots, that holds the send back now. In
// the result, `held` is Nothing if all limits allow the send. Takes nothing.
SendGrant Limits::find_hold(const SendAsk& ask) const {
  auto hold = held_by_pause(ask.now);
  if (hold.by == QueuedBy::Nothing && uses_breaker(ask) && !keys_.policy->breaker->dry_run) {
    hold = held_by_circuit(ask.now);
  }
  if (hold.by == QueuedBy::Nothing && rate_) hold = held_by_rate(ask);
  if (hold.by == QueuedBy::Nothing && slots_) hold = held_by_slots(ask);
  SendGrant answer;
  answer.held = hold.by;
  answer.until = hold.until;
  return answer;
}

SendGrant Limits::look(const SendAsk& ask) const {
  const std::lock_guard lock(state_->mutex_);
  return find_hold(ask);
}

// --- a send ---

// Decides in one step whether a send may go out. If all limits allow it, takes what the send needs
// from each of them, until `leave` gives it back, and returns a grant whose `held` is Nothing.
// Otherwise takes nothing, and `held` is the limit that holds the send back. Adds state changes to
// `changes`, for observers.
SendGrant Limits::enter(const SendAsk& ask, StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  state_->end_pauses(ask.now, changes);
  report_remote_changes(ask.now, changes);  // from other processes that share the limits
  // `held` is the first limit that does not allow the send. Nothing is taken or counted yet.
  auto grant = find_hold(ask);
  if (grant.held == QueuedBy::Circuit) grant.why_open = why_open();
  // The breaker is asked last, because it counts the send. One of kind Share may refuse the send at
  // random. It then sets `held`, and no `why_open`, because its circuit is closed.
  if (grant.held == QueuedBy::Nothing && (!breaker_ || ask_breaker(ask, grant, changes))) {
    // After a pause comes a ramp, a slow start. `ramps` keeps the number of the send in each, for
    // `leave`.
    for (std::size_t index = 0; index < pauses_.size(); ++index) {
      if (!pauses_[index]) continue;
      grant.ramps[index] = pauses_[index]->machine.enter(pause_policy(index), ask.now);
      ++pauses_[index]->in_flight;
    }
    if (rate_) take_tokens(ask);
    if (slots_) slots_->machine.take();
  }
  on_asked(ask, grant.held);  // may request what the next sends need from a shared store
  return grant;
}

// Asks the breaker whether a send may go out, and notes its answer in `grant`. Returns false if the
// breaker refuses the send; `grant.held` is then Circuit. With `dry_run`, a breaker only observes
// what it would do, and refuses nothing.
bool Limits::ask_breaker(const SendAsk& ask, SendGrant& grant, StateChanges& changes) {
  auto& breaker = breaker_->machine;
  if (!uses_breaker(ask)) {  // the policy applies it only to retries
    breaker.pass(grant);     // it still counts how the send ends
    return true;
  }
  const auto& policy = *own_policy().breaker;  // in a fleet, its numbers are this process's share
  // An open breaker whose time is over becomes half-open here, and lets the send out as a probe.
  const auto state_before = breaker.state();
  const auto until = breaker.until();
  breaker.ask(policy, ask.now, ask.random, grant);
  if (breaker.state() != state_before) {
    // Now half-open, or closed: kind Share has no probes, and a breaker is reset if a reloaded
    // policy file changes its kind to or from Share.
    const bool open_time_ended = state_before == Circuit::Open && until <= ask.now;
    changes.why = open_time_ended ? "its open time has ended" : "its kind has changed";
    report_circuit_change(state_before, ask.now, changes);
  }
  // Breaker::ask sets `votes` if the send may go out. The breaker will then count how the send ends
  // (its vote).
  if (grant.votes || policy.dry_run) return true;
  grant.held = QueuedBy::Circuit;
  return false;
}

void Limits::take_tokens(const SendAsk& ask) {
  rate_->machine.take(*own_policy().rate, ask.now, ask.cost);
}
void Limits::release_breaker(const SendGrant& grant) { breaker_->machine.give_back(grant); }

// Reports the end of a send to the breaker. Clears `votes`, so that `leave` does not report it.
void Limits::vote_early(SendGrant& grant, const SendEnd& end, Time now, double random,
                        StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  if (!std::exchange(grant.votes, false)) return;
  if (end.counts) vote(grant, end, now, random, changes);
  if (!end.counts) release_breaker(grant);
}

// Called once when a send that `enter` let out has ended: gives back what `enter` took, and lets
// the limits adapt to how the send ended. `end` is nullptr if that is unknown, for example because
// the send did not go out. `random`, in [0, 1), varies the time for which a breaker opens. Adds
// state changes to `changes`, for observers.
//
// A breaker opens and closes by the results of sends, which are its votes. `grant.votes` is true if
// it needs the result of this send, and `vote_early` has not reported it.
void Limits::leave(const SendGrant& grant, const SendEnd* end, Time now, double random,
                   StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  const bool counts = end != nullptr && end->counts;  // the end says something about the server
  for (std::size_t index = 0; index < pauses_.size(); ++index) {
    if (!pauses_[index]) continue;  // the policy has no such pause
    // After a pause comes a ramp, a slow start. A response lets more sends out, a failure fewer.
    pauses_[index]->machine.leave(grant.ramps[index], end);
    --pauses_[index]->in_flight;
  }
  if (slots_) {
    slots_->machine.give_back();
    if (counts) adjust_limit(*end, now, changes);
    on_slot_freed(now);  // may give the slot to a process that shares the limit
  }
  if (grant.votes && counts) vote(grant, *end, now, random, changes);
  if (grant.votes && !counts) release_breaker(grant);  // the send may have been a probe
  report_remote_changes(now, changes);                 // from other processes that share the limits
  // A pause whose time is over is removed once no send is in flight under it, as perhaps now.
  state_->end_pauses(now, changes);
}

// Adjusts the limit of concurrent sends to the end of a send.
void Limits::adjust_limit(const SendEnd& end, Time now, StateChanges& changes) {
  const auto& policy = *keys_.policy->concurrency;
  auto& slots = slots_->machine;
  const auto before = slots.limit(policy);
  slots.adapt(policy, end.dropped, now);
  const auto after = slots.limit(policy);
  if (after == before) return;
  auto& change = changes.limit.emplace();
  change.key = without_kind(keys_.slots);
  change.from = before;
  change.to = after;
}

// Reports to the breaker how a send ended. If that changes the breaker's state, adds the change and
// its reason to `changes`. A breaker that closes begins a ramp if its policy lets sends wait.
void Limits::vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
                  StateChanges& changes) {
  auto& breaker = breaker_->machine;
  const auto before = breaker.state();
  breaker.vote(*own_policy().breaker, grant, end, now, random);
  if (breaker.state() == before) return;
  changes.why = breaker.why_open();
  if (breaker.state() == Circuit::Closed) {
    changes.why = keys_.policy->breaker->probes == 1 ? "a probe succeeded" : "the probes succeeded";
    if (pauses_[kRamp]) state_->begin_pause(pauses_[kRamp], {}, now);
  }
  report_circuit_change(before, now, changes);
}

// Adds `change`, 1 or -1, to the number of sends that wait for these limits.
void Limits::wait(int change, std::int64_t change_of_cost) {
  const std::lock_guard lock(state_->mutex_);
  state_->waiting_ += change;
  for (const auto& scope : pauses_) {
    if (scope) scope->waiting += change;
  }
  if (rate_) {
    rate_->waiting += change;
    rate_->waiting_cost += change_of_cost;
  }
  if (slots_) slots_->waiting += change;
  if (breaker_) breaker_->waiting += change;
}

SendLimits::Waiting Limits::waiting(const SendAsk& ask) const {
  const std::lock_guard lock(state_->mutex_);
  return {rate_ ? token_at(ask) : Time(), slots_ ? slots_->waiting : 0};
}

Time Limits::token_at(const SendAsk& ask) const {
  const SendsAhead ahead{rate_->waiting, rate_->waiting_cost};
  return rate_->machine.ready_at(*own_policy().rate, ask.cost, ahead);
}

void Limits::pause(std::size_t which, Time until, Time /*now*/) {
  const std::lock_guard lock(state_->mutex_);
  if (!pauses_[which]) return;
  state_->begin_pause(pauses_[which], without_kind(keys_.pauses[which]), until);
}

// --- reports ---

// Adds the change of the breaker's state from `from` to the current one to `changes`.
void Limits::report_circuit_change(Circuit from, Time now, StateChanges& changes) {
  const auto circuit = circuit_now(now);
  auto& change = changes.circuit.emplace();
  change.key = without_kind(keys_.breaker);
  change.from = from;
  change.to = *circuit.circuit;
  change.failed = circuit.failed;
  change.total = circuit.total;
  change.until = circuit.until;
  change.dry_run = keys_.policy->breaker->dry_run;
}

// Returns the current state of the limits, for the history of a call: in `circuit` the breaker's,
// in `limits` that of the other limits. Each is nullopt if the policy has no such limit. With only
// a rate, `limits` is set but empty, because a rate has no state that is worth recording.
GuardFacts Limits::facts(Time now, WallTime wall_now) const {
  const std::lock_guard lock(state_->mutex_);
  GuardFacts facts;
  if (breaker_) {
    const auto state = circuit_now(now);
    auto& circuit = facts.circuit.emplace();
    circuit.key = without_kind(keys_.breaker);  // without its first word, "breaker"
    circuit.state = *state.circuit;
    circuit.failed = state.failed;
    circuit.total = state.total;
    circuit.until = wall_time(state.until, now, wall_now);  // nullopt if the circuit is not open
  }
  // A policy with pauses always has the first one.
  if (!rate_ && !slots_ && !pauses_[0]) return facts;
  auto& limits = facts.limits.emplace();
  if (slots_) {  // the limit of concurrent sends, and how many of them it counts now
    limits.limit = slots_->machine.limit(*keys_.policy->concurrency);
    limits.in_flight = slots_->machine.used();
  }
  auto paused_until = now;
  for (const auto& pause : pauses_) {
    if (pause) paused_until = std::max(paused_until, pause->machine.until());
  }
  if (paused_until > now) limits.paused_until = wall_time(paused_until, now, wall_now);
  return facts;
}

}  // namespace httpretry::guard
