#include "local_limits.hpp"

#include "limit_rules.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::guard {
namespace {

// The state of that key; nullptr where it is empty.
template <typename States>
auto state_of(States& states, const std::string& key, Time now) {
  return key.empty() ? nullptr : states.at(key, now);
}

}  // namespace

LocalState::Limits::Limits(std::shared_ptr<LocalState> state, LimitKeys keys, Time now)
    : state_(std::move(state)), keys_(std::move(keys)) {
  for (std::size_t which = 0; which < keys_.pauses.size(); ++which) {
    pauses_[which] = state_of(state_->pauses_, keys_.pauses[which], now);
  }
  rate_ = state_of(state_->rates_, keys_.rate, now);
  slots_ = state_of(state_->slots_, keys_.slots, now);
  breaker_ = state_of(state_->breakers_, keys_.breaker, now);
  if (breaker_ && keys_.policy->breaker->when_open == BreakerPolicy::WhenOpen::Wait) {
    const auto key = "ramp " + std::string(without_kind(keys_.breaker));
    pauses_[kRamp] = state_of(state_->pauses_, key, now);
  }
}

SendGrant LocalState::Limits::held(const SendAsk& ask) const {
  const auto& policy = *keys_.policy;
  SendGrant answer;
  const auto hold = [&](QueuedBy by, Time until) {
    answer.held = by;
    answer.until = until;
    return answer;
  };
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    const auto* const scope = pauses_[which].get();
    if (scope == nullptr || scope->machine.allows(pause_policy(keys_, which), ask.now)) continue;
    const bool over = ask.now >= scope->machine.until();
    return hold(over ? QueuedBy::Ramp : QueuedBy::Pause, scope->machine.next_change(ask.now));
  }
  if (asks_breaker(keys_, ask) && !policy.breaker->dry_run) {
    const auto until = breaker_->machine.held_until(*policy.breaker, ask.now);
    if (until > ask.now) return hold(QueuedBy::Circuit, until);
  }
  if (rate_) {
    const auto ready = rate_->machine.ready_at(*policy.rate);
    if (ready > ask.now) return hold(QueuedBy::Rate, ready);
  }
  if (slots_) {
    const bool low = ask.priority == Priority::Low && slots_->waiting > 1;
    if (!slots_->machine.free(*policy.concurrency, low)) return hold(QueuedBy::Concurrency, kNever);
  }
  return answer;
}

SendGrant LocalState::Limits::look(const SendAsk& ask) const {
  const std::lock_guard lock(state_->mutex_);
  return held(ask);
}

SendGrant LocalState::Limits::enter(const SendAsk& ask, StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  if (!state_->paused_.empty()) state_->end_pauses(ask.now, changes);
  auto grant = held(ask);
  if (grant.held == QueuedBy::Circuit) changes.why = breaker_->machine.why_open();
  if (grant.held != QueuedBy::Nothing) return grant;
  if (breaker_ && !take_ticket(ask, grant, changes)) return grant;
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    auto* const scope = pauses_[which].get();
    if (scope == nullptr) continue;
    grant.ramps[which] = scope->machine.enter(pause_policy(keys_, which), ask.now);
    ++scope->under_way;
  }
  if (rate_) rate_->machine.take(*keys_.policy->rate, ask.now);
  if (slots_) slots_->machine.take();
  return grant;
}

bool LocalState::Limits::take_ticket(const SendAsk& ask, SendGrant& grant, StateChanges& changes) {
  const auto& policy = *keys_.policy->breaker;
  auto& breaker = breaker_->machine;
  auto ticket = breaker.ticket();
  bool allowed = true;
  if (asks_breaker(keys_, ask)) {
    const auto before = breaker.state();
    const auto answer = breaker.ask(policy, ask.now, ask.random);
    if (breaker.state() != before) {
      changes.why = breaker.state() == Circuit::HalfOpen ? "the time that it was open for is over"
                                                         : "its kind has changed";
      tell(before, changes);
    }
    allowed = answer.allowed;
    ticket = answer.ticket;
    grant.refused_share = answer.refused_share;
  }
  if (!allowed && !policy.dry_run) {
    grant.held = QueuedBy::Circuit;
    return false;
  }
  grant.votes = allowed;
  grant.generation = ticket.generation;
  grant.probe = ticket.probe;
  return true;
}

void LocalState::Limits::vote_early(SendGrant& grant, const SendEnd& end, Time now, double random,
                                    StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  if (!std::exchange(grant.votes, false)) return;
  if (end.counts) vote(grant, end, now, random, changes);
  if (!end.counts) breaker_->machine.give_back({grant.generation, grant.probe});
}

void LocalState::Limits::leave(const SendGrant& grant, const SendEnd* end, Time now, double random,
                               StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  const bool counts = end != nullptr && end->counts;
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    if (!pauses_[which]) continue;
    pauses_[which]->machine.leave(grant.ramps[which], ramp_end(end));
    --pauses_[which]->under_way;
  }
  if (slots_) {
    slots_->machine.give_back();
    if (counts) learn(slots_->machine, keys_, *end, now, changes);
  }
  if (grant.votes && counts) {
    vote(grant, *end, now, random, changes);
  } else if (grant.votes) {
    breaker_->machine.give_back({grant.generation, grant.probe});
  }
  if (!state_->paused_.empty()) state_->end_pauses(now, changes);
}

void LocalState::Limits::vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
                              StateChanges& changes) {
  const auto& policy = *keys_.policy->breaker;
  auto& breaker = breaker_->machine;
  const auto before = breaker.state();
  const Vote vote{end.failed, end.took, end.server_delay};
  breaker.vote(policy, {grant.generation, grant.probe}, vote, now, random);
  if (breaker.state() == before) return;
  changes.why = breaker.why_open();
  if (breaker.state() == Circuit::Closed) {
    changes.why = policy.probes == 1 ? "a probe succeeded" : "the probes succeeded";
    if (pauses_[kRamp]) state_->begin_pause(pauses_[kRamp], {}, now);
  }
  tell(before, changes);
}

void LocalState::Limits::tell(Circuit from, StateChanges& changes) const {
  const auto& breaker = breaker_->machine;
  const auto counts = breaker.counts({});
  auto& change = changes.circuit.emplace();
  change.key = without_kind(keys_.breaker);
  change.from = from;
  change.to = breaker.state();
  change.failed = counts.failed();
  change.total = counts.all;
  if (change.to == Circuit::Open) change.until = breaker.until();
  change.dry_run = keys_.policy->breaker->dry_run;
}

void LocalState::Limits::wait(int more) {
  const std::lock_guard lock(state_->mutex_);
  for (const auto& scope : pauses_) {
    if (scope) scope->waiting += more;
  }
  if (rate_) rate_->waiting += more;
  if (slots_) slots_->waiting += more;
  if (breaker_) breaker_->waiting += more;
}

SendLimits::Waiting LocalState::Limits::waiting() const {
  const std::lock_guard lock(state_->mutex_);
  return {rate_ ? rate_->waiting : 0, slots_ ? slots_->waiting : 0};
}

void LocalState::Limits::pause(std::size_t which, Time until, Time /*now*/) {
  const std::lock_guard lock(state_->mutex_);
  if (!pauses_[which]) return;
  state_->begin_pause(pauses_[which], without_kind(keys_.pauses[which]), until);
}

GuardFacts LocalState::Limits::facts(Time now, WallTime wall_now) const {
  const std::lock_guard lock(state_->mutex_);
  GuardFacts facts;
  if (breaker_) {
    const auto& breaker = breaker_->machine;
    const auto counts = breaker.counts(now);
    auto& told = facts.circuit.emplace();
    told.key = without_kind(keys_.breaker);
    told.state = breaker.state();
    told.failed = counts.failed();
    told.total = counts.all;
    if (told.state == Circuit::Open) told.until = wall_time(breaker.until(), now, wall_now);
  }
  if (!rate_ && !slots_ && !pauses_[0]) return facts;
  auto& limits = facts.limits.emplace();
  if (slots_) {
    limits.limit = slots_->machine.limit(*keys_.policy->concurrency);
    limits.in_flight = slots_->machine.used();
  }
  for (const auto& scope : pauses_) {
    if (!scope || scope->machine.until() <= now) continue;
    limits.paused_until = wall_time(scope->machine.until(), now, wall_now);
  }
  return facts;
}

}  // namespace httpretry::guard
