#include "local_limits.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::guard {
namespace {

WallTime wall_time(Time when, Time now, WallTime wall_now) {
  return wall_now + std::chrono::duration_cast<WallTime::duration>(when - now);
}

std::string why_opened(const BreakerPolicy& policy, const Breaker& breaker) {
  const auto in_a_row = breaker.tripped_in_a_row();
  if (policy.failures > 0 && in_a_row >= policy.failures) {
    return std::to_string(in_a_row) + (in_a_row == 1 ? " failure in a row" : " failures in a row");
  }
  const auto counts = breaker.tripped();
  const bool failed = counts.failed() >= policy.failure_ratio * counts.all;
  return std::to_string(failed ? counts.failed() : counts.slow) + " of " +
         std::to_string(counts.all) + (failed ? " failed in " : " were slow in ") +
         duration_text(policy.window);
}

}  // namespace

std::string_view without_kind(std::string_view key) { return key.substr(key.find(' ') + 1); }

LocalState::Limits::Limits(std::shared_ptr<LocalState> state, LimitKeys keys, Time now)
    : state_(std::move(state)), keys_(std::move(keys)) {
  for (std::size_t which = 0; which < keys_.pauses.size(); ++which) {
    use(pauses_[which], keys_.pauses[which], now);
  }
  use(rate_, keys_.rate, now);
  use(slots_, keys_.slots, now);
  use(breaker_, keys_.breaker, now);
  if (!breaker_) return;
  if (!breaker_->circuit) breaker_->circuit = std::make_unique<CircuitState>();
  breaker_->circuit->policy = keys_.policy;
  if (keys_.policy->breaker->when_open == BreakerPolicy::WhenOpen::Wait) pauses_[kRamp] = breaker_;
}

void LocalState::Limits::use(std::shared_ptr<Scope>& member, const std::string& key, Time now) {
  if (key.empty()) return;
  member = state_->scope_of(key, now);
  if (std::find(scopes_.begin(), scopes_.end(), member.get()) == scopes_.end()) {
    scopes_.push_back(member.get());
  }
}

const PausePolicy& LocalState::Limits::pause_policy(std::size_t which) const {
  static const PausePolicy ramp;
  return which == kRamp ? ramp : keys_.policy->pause;
}

bool LocalState::Limits::asks_breaker(const SendAsk& ask) const {
  return breaker_ &&
         (ask.is_retry || keys_.policy->breaker->applies_to == BreakerPolicy::AppliesTo::All);
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
    if (scope == nullptr || !scope->paused) continue;
    if (scope->pause.allows(pause_policy(which), ask.now)) continue;
    const bool over = ask.now >= scope->pause.until();
    return hold(over ? QueuedBy::Ramp : QueuedBy::Pause, scope->pause.next_change(ask.now));
  }
  if (asks_breaker(ask) && !policy.breaker->dry_run) {
    const auto until = breaker_->circuit->breaker.held_until(*policy.breaker, ask.now);
    if (until > ask.now) return hold(QueuedBy::Circuit, until);
  }
  if (rate_) {
    const auto ready = rate_->rate.ready_at(*policy.rate);
    if (ready > ask.now) return hold(QueuedBy::Rate, ready);
  }
  if (slots_) {
    const bool low = ask.priority == Priority::Low && slots_->waiting > 1;
    if (!slots_->slots.free(*policy.concurrency, low)) return hold(QueuedBy::Concurrency, kNever);
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
  if (grant.held == QueuedBy::Circuit) changes.why = breaker_->circuit->why;
  if (grant.held != QueuedBy::Nothing) return grant;
  if (breaker_ && !take_ticket(ask, grant, changes)) return grant;
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    auto* const scope = pauses_[which].get();
    if (scope == nullptr || !scope->paused) continue;
    grant.ramps[which] = scope->pause.enter(pause_policy(which), ask.now);
  }
  if (rate_) rate_->rate.take(*keys_.policy->rate, ask.now);
  if (slots_) slots_->slots.take();
  for (auto* const scope : scopes_) ++scope->under_way;
  return grant;
}

bool LocalState::Limits::take_ticket(const SendAsk& ask, SendGrant& grant, StateChanges& changes) {
  const auto& policy = *keys_.policy->breaker;
  auto& breaker = breaker_->circuit->breaker;
  auto ticket = breaker.ticket();
  bool allowed = true;
  if (asks_breaker(ask)) {
    const auto before = breaker.state();
    const auto answer = breaker.ask(policy, ask.now, ask.random);
    if (breaker.state() != before) {
      changes.why = "the time that it was open for is over";
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
  if (!end.counts) breaker_->circuit->breaker.give_back({grant.generation, grant.probe});
}

void LocalState::Limits::leave(const SendGrant& grant, const SendEnd* end, Time now, double random,
                               StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  const bool counts = end != nullptr && end->counts;
  for (auto* const scope : scopes_) --scope->under_way;
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    if (grant.ramps[which] == 0) continue;
    pauses_[which]->pause.leave(grant.ramps[which], counts && end->responded);
  }
  if (slots_) {
    slots_->slots.give_back();
    if (counts) learn(*end, now, changes);
  }
  if (grant.votes && counts) {
    vote(grant, *end, now, random, changes);
  } else if (grant.votes) {
    breaker_->circuit->breaker.give_back({grant.generation, grant.probe});
  }
  if (!state_->paused_.empty()) state_->end_pauses(now, changes);
}

void LocalState::Limits::learn(const SendEnd& end, Time now, StateChanges& changes) {
  const auto& policy = *keys_.policy->concurrency;
  const auto before = slots_->slots.limit(policy);
  slots_->slots.learn(policy, end.dropped, now);
  const auto after = slots_->slots.limit(policy);
  if (after == before) return;
  auto& change = changes.limit.emplace();
  change.key = without_kind(keys_.slots);
  change.from = before;
  change.to = after;
}

void LocalState::Limits::vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
                              StateChanges& changes) {
  const auto& policy = *keys_.policy->breaker;
  auto& circuit = *breaker_->circuit;
  const auto before = circuit.breaker.state();
  const Vote vote{end.failed, end.took, end.server_delay};
  circuit.breaker.vote(policy, {grant.generation, grant.probe}, vote, now, random);
  const auto after = circuit.breaker.state();
  if (after == before) return;
  if (after == Circuit::Closed) {
    changes.why = policy.probes == 1 ? "a probe succeeded" : "the probes succeeded";
    if (pauses_[kRamp]) state_->begin_pause(*breaker_, now);
  } else if (before == Circuit::HalfOpen) {
    changes.why = "a probe failed";
  } else {
    changes.why = why_opened(policy, circuit.breaker);
  }
  circuit.why = changes.why;
  tell(before, changes);
}

void LocalState::Limits::tell(Circuit from, StateChanges& changes) const {
  const auto& circuit = *breaker_->circuit;
  auto& change = changes.circuit.emplace();
  change.key = without_kind(keys_.breaker);
  change.from = from;
  change.to = circuit.breaker.state();
  change.failed = circuit.breaker.tripped().failed();
  change.total = circuit.breaker.tripped().all;
  if (change.to == Circuit::Open) change.until = circuit.breaker.until();
  change.dry_run = keys_.policy->breaker->dry_run;
}

void LocalState::Limits::wait(int more) {
  const std::lock_guard lock(state_->mutex_);
  for (auto* const scope : scopes_) scope->waiting += more;
}

SendLimits::Waiting LocalState::Limits::waiting() const {
  const std::lock_guard lock(state_->mutex_);
  return {rate_ ? rate_->waiting : 0, slots_ ? slots_->waiting : 0};
}

void LocalState::Limits::pause(std::size_t which, Time until, Time /*now*/) {
  const std::lock_guard lock(state_->mutex_);
  if (pauses_[which]) state_->begin_pause(*pauses_[which], until);
}

GuardFacts LocalState::Limits::facts(Time now, WallTime wall_now) const {
  const std::lock_guard lock(state_->mutex_);
  GuardFacts facts;
  if (breaker_) {
    const auto& policy = *keys_.policy->breaker;
    const auto& circuit = *breaker_->circuit;
    auto& told = facts.circuit.emplace();
    told.key = without_kind(keys_.breaker);
    told.state = circuit.breaker.state();
    const bool closed = told.state == Circuit::Closed;
    const auto counts = closed ? circuit.breaker.counts(policy, now) : circuit.breaker.tripped();
    told.failed = counts.failed();
    told.total = counts.all;
    if (told.state == Circuit::Open) {
      told.until = wall_time(circuit.breaker.until(), now, wall_now);
    }
  }
  if (!rate_ && !slots_ && !pauses_[0]) return facts;
  auto& limits = facts.limits.emplace();
  if (slots_) {
    limits.limit = slots_->slots.limit(*keys_.policy->concurrency);
    limits.in_flight = slots_->slots.used();
  }
  for (const auto& scope : pauses_) {
    if (!scope || !scope->paused || scope->pause.until() <= now) continue;
    limits.paused_until = wall_time(scope->pause.until(), now, wall_now);
  }
  return facts;
}

}  // namespace httpretry::guard
