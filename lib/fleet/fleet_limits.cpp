#include "fleet_limits.hpp"

#include "lib/guard/limit_rules.hpp"
#include "lib/http/text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {

using guard::asks_breaker;
using guard::kRamp;
using guard::pause_policy;
using guard::wall_time;
using guard::without_kind;

namespace {

// A send that waits for a reply looks again so often. The reply wakes it, too.
constexpr Duration kLookAgain = std::chrono::milliseconds(5);

// In SendGrant::generation: a ticket of the process's own breaker.
constexpr std::uint32_t kOwn = 1U << 31U;

Ticket ticket_of(const SendGrant& grant) {
  Ticket ticket;
  ticket.generation = grant.generation & ~kOwn;
  ticket.probe = grant.probe;
  return ticket;
}

ConcurrencyPolicy with_max(ConcurrencyPolicy policy, int max) {
  policy.max = max;
  policy.min = std::min(policy.min, max);
  policy.initial = std::min(policy.initial, max);
  return policy;
}

}  // namespace

FleetState::Limits::Limits(std::shared_ptr<FleetState> state, LimitKeys keys, Time now)
    : state_(std::move(state)), keys_(std::move(keys)) {
  for (std::size_t which = 0; which < keys_.pauses.size(); ++which) {
    use(pauses_[which], keys_.pauses[which], now);
  }
  use(rate_, keys_.rate, now);
  use(slots_, keys_.slots, now);
  use(breaker_, keys_.breaker, now);
  if (!breaker_) return;
  if (!breaker_->circuit) breaker_->circuit = std::make_unique<CircuitState>();
  if (keys_.policy->breaker->when_open == BreakerPolicy::WhenOpen::Wait) pauses_[kRamp] = breaker_;
}

void FleetState::Limits::use(std::shared_ptr<Scope>& member, const std::string& key, Time now) {
  if (key.empty()) return;
  member = state_->scope_of(key, now);
  member->policy = keys_.policy;
  if (std::find(scopes_.begin(), scopes_.end(), member.get()) == scopes_.end()) {
    scopes_.push_back(member.get());
  }
}

// Of kind Share each process has its own anyway.
BreakerPolicy FleetState::Limits::own_breaker() const {
  const auto& policy = *keys_.policy->breaker;
  if (policy.kind == BreakerPolicy::Kind::Share) return policy;
  return share_of(policy, state_->remote_->workers());
}

// --- what holds a send ---

FleetState::Limits::Hold FleetState::Limits::held_by_pause(Time now) const {
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    const auto* const scope = pauses_[which].get();
    if (scope == nullptr || !scope->paused) continue;
    if (scope->pause.allows(pause_policy(keys_, which), now)) continue;
    const bool over = now >= scope->pause.until();
    return {over ? QueuedBy::Ramp : QueuedBy::Pause, scope->pause.next_change(now)};
  }
  return {};
}

FleetState::Limits::Hold FleetState::Limits::held_by_circuit(Time now) const {
  const auto& circuit = *breaker_->circuit;
  if (state_->shares_circuit(*breaker_, now)) {
    const auto answer = circuit.votes.ask(now);
    if (answer.allowed) return {};
    if (answer.asks) return {QueuedBy::SharedState, now + kLookAgain};
    return {QueuedBy::Circuit, answer.until};
  }
  const auto until = circuit.own.held_until(own_breaker(), now);
  return until > now ? Hold{QueuedBy::Circuit, until} : Hold{};
}

bool FleetState::Limits::shares_rate(Time now) const {
  return state_->remote_->up() &&
         (rate_->tokens.has_some() ||
          !rate_->tokens.question().without(now, state_->remote_->patience()));
}

FleetState::Limits::Hold FleetState::Limits::held_by_rate(Time now) const {
  if (!shares_rate(now)) {
    const auto ready =
        rate_->rate.ready_at(share_of(*keys_.policy->rate, state_->remote_->workers()));
    return ready > now ? Hold{QueuedBy::Rate, ready} : Hold{};
  }
  const auto& tokens = rate_->tokens;
  const auto ready = tokens.ready_at();
  if (ready > now) return {QueuedBy::Rate, ready};
  return tokens.has_some() ? Hold{} : Hold{QueuedBy::SharedState, now + kLookAgain};
}

bool FleetState::Limits::shares_slots(Time now) const {
  return state_->remote_->up() &&
         !slots_->held.question().without(now, state_->remote_->patience());
}

int FleetState::Limits::slot_limit(Time now) const {
  if (shares_slots(now)) return slots_->held.granted();
  return share_of(*keys_.policy->concurrency, state_->remote_->workers()).max;
}

FleetState::Limits::Hold FleetState::Limits::held_by_slots(const SendAsk& ask) const {
  const bool low = ask.priority == Priority::Low && slots_->waiting > 1;
  const int limit = slot_limit(ask.now);
  const auto& policy = *keys_.policy->concurrency;
  if (limit > 0 && slots_->slots.free(with_max(policy, limit), low)) return {};
  const auto& held = slots_->held;
  const bool all = held.granted() >= policy.max || slots_->slots.used() < limit;
  if (!shares_slots(ask.now) || all) return {QueuedBy::Concurrency, kNever};
  // The ends of other processes' sends are not told: it must ask again.
  if (ask.now < held.next_ask() && !held.question().is_asked()) {
    return {QueuedBy::Concurrency, held.next_ask()};
  }
  return {QueuedBy::SharedState, ask.now + kLookAgain};
}

SendGrant FleetState::Limits::held(const SendAsk& ask) const {
  auto hold = held_by_pause(ask.now);
  if (hold.by == QueuedBy::Nothing && asks_breaker(keys_, ask) && !keys_.policy->breaker->dry_run) {
    hold = held_by_circuit(ask.now);
  }
  if (hold.by == QueuedBy::Nothing && rate_) hold = held_by_rate(ask.now);
  if (hold.by == QueuedBy::Nothing && slots_) hold = held_by_slots(ask);
  SendGrant answer;
  answer.held = hold.by;
  answer.until = hold.until;
  return answer;
}

SendGrant FleetState::Limits::look(const SendAsk& ask) const {
  const std::lock_guard lock(state_->mutex_);
  return held(ask);
}

void FleetState::Limits::ask_remote(const SendAsk& ask, QueuedBy held) {
  if (!state_->remote_->up() || held == QueuedBy::Pause || held == QueuedBy::Ramp) return;
  if (asks_breaker(keys_, ask) && state_->shares_circuit(*breaker_, ask.now)) {
    const auto& votes = breaker_->circuit->votes;
    if (votes.ask(ask.now).asks && !votes.question().is_asked()) {
      state_->tell_votes(breaker_, true, ask.now);
    }
  }
  if (held == QueuedBy::Circuit) return;
  if (rate_) {
    // A send that goes out may still be counted among those that wait.
    const bool goes = held == QueuedBy::Nothing;
    const int waiting = goes ? std::max(rate_->waiting - 1, 0) : std::max(rate_->waiting, 1);
    state_->ask_for_tokens(rate_, waiting, ask.now);
  }
  if (!slots_ || (held != QueuedBy::Concurrency && held != QueuedBy::SharedState)) return;
  const int wanted = std::min(slots_->slots.used() + std::max(slots_->waiting, 1),
                              slots_->slots.limit(*keys_.policy->concurrency));
  if (slots_->held.asks(wanted, ask.now)) state_->ask_for_slots(slots_, wanted, ask.now);
}

// --- a send ---

SendGrant FleetState::Limits::enter(const SendAsk& ask, StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  if (!state_->paused_.empty()) state_->end_pauses(ask.now, changes);
  for (auto* const scope : scopes_) scope->last_used = ask.now;
  if (breaker_) tell_news(ask.now, changes);
  auto grant = held(ask);
  if (grant.held == QueuedBy::Circuit) changes.why = breaker_->circuit->why;
  if (grant.held == QueuedBy::Nothing && breaker_ && !take_ticket(ask, grant, changes))
    return grant;
  if (grant.held == QueuedBy::Nothing) {
    for (std::size_t which = 0; which < pauses_.size(); ++which) {
      auto* const scope = pauses_[which].get();
      if (scope == nullptr || !scope->paused) continue;
      grant.ramps[which] = scope->pause.enter(pause_policy(keys_, which), ask.now);
    }
    if (rate_) take_token(ask.now);
    if (slots_) {
      slots_->slots.take();
      slots_->most_used = std::max(slots_->most_used, slots_->slots.used());
    }
    for (auto* const scope : scopes_) ++scope->under_way;
  }
  ask_remote(ask, grant.held);
  return grant;
}

bool FleetState::Limits::take_ticket(const SendAsk& ask, SendGrant& grant, StateChanges& changes) {
  auto& circuit = *breaker_->circuit;
  const bool asks = asks_breaker(keys_, ask);
  if (state_->shares_circuit(*breaker_, ask.now)) {
    grant.votes = !asks || circuit.votes.ask(ask.now).allowed;
    const auto ticket = grant.votes && asks ? circuit.votes.take() : circuit.votes.ticket();
    grant.generation = ticket.generation & ~kOwn;
    grant.probe = ticket.probe;
    return true;
  }
  auto ticket = circuit.own.ticket();
  bool allowed = true;
  if (asks) {
    const auto before = circuit.own.state();
    const auto answer = circuit.own.ask(own_breaker(), ask.now, ask.random);
    if (circuit.own.state() != before) {
      changes.why = "the time that it was open for is over";
      tell_own(before, ask.now, changes);
    }
    allowed = answer.allowed;
    ticket = answer.ticket;
    grant.refused_share = answer.refused_share;
  }
  if (!allowed && !keys_.policy->breaker->dry_run) {
    grant.held = QueuedBy::Circuit;
    const auto until = circuit.own.held_until(own_breaker(), ask.now);
    if (until > ask.now) grant.until = until;
    return false;
  }
  grant.votes = allowed;
  grant.generation = ticket.generation | kOwn;
  grant.probe = ticket.probe;
  return true;
}

void FleetState::Limits::take_token(Time now) {
  // The remote state may have come back since `held` decided by this process's own rate.
  if (rate_->tokens.count() > 0 && shares_rate(now)) return rate_->tokens.take(now);
  rate_->rate.take(share_of(*keys_.policy->rate, state_->remote_->workers()), now);
}

void FleetState::Limits::vote_early(SendGrant& grant, const SendEnd& end, Time now, double random,
                                    StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  if (!std::exchange(grant.votes, false)) return;
  if (end.counts) vote(grant, end, now, random, changes);
  if (!end.counts) give_back_ticket(grant);
}

void FleetState::Limits::leave(const SendGrant& grant, const SendEnd* end, Time now, double random,
                               StateChanges& changes) {
  const std::lock_guard lock(state_->mutex_);
  const bool counts = end != nullptr && end->counts;
  for (auto* const scope : scopes_) --scope->under_way;
  for (std::size_t which = 0; which < pauses_.size(); ++which) {
    if (grant.ramps[which] != 0)
      pauses_[which]->pause.leave(grant.ramps[which], guard::ramp_end(end));
  }
  if (slots_) {
    slots_->slots.give_back();
    // Each process's own, within what all may have.
    if (counts) guard::learn(slots_->slots, keys_, *end, now, changes);
    const auto& held = slots_->held;
    const int used = slots_->slots.used();
    // Others wait for it.
    if (held.contended() && used < held.granted() && shares_slots(now)) {
      state_->ask_for_slots(slots_, used + slots_->waiting, now);
    }
  }
  if (grant.votes && counts) {
    vote(grant, *end, now, random, changes);
  } else if (grant.votes) {
    give_back_ticket(grant);
  }
  if (breaker_) tell_news(now, changes);
  if (!state_->paused_.empty()) state_->end_pauses(now, changes);
}

void FleetState::Limits::give_back_ticket(const SendGrant& grant) {
  auto& circuit = *breaker_->circuit;
  if ((grant.generation & kOwn) != 0) return circuit.own.give_back(ticket_of(grant));
  circuit.votes.give_back(ticket_of(grant));
}

void FleetState::Limits::vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
                              StateChanges& changes) {
  auto& circuit = *breaker_->circuit;
  const Vote vote{end.failed, end.took, end.server_delay};
  if ((grant.generation & kOwn) == 0) {
    if (circuit.votes.vote(*keys_.policy->breaker, ticket_of(grant), vote)) {
      state_->tell_votes(breaker_, false, now);
    }
    return;
  }
  const auto before = circuit.own.state();
  circuit.own.vote(own_breaker(), ticket_of(grant), vote, now, random);
  if (circuit.own.state() == before) return;
  changes.why = circuit.own.state() == Circuit::Closed ? "a probe succeeded"
                : before == Circuit::HalfOpen          ? "a probe failed"
                                                       : circuit.own.why_open();
  circuit.why = changes.why;
  if (circuit.own.state() == Circuit::Closed && pauses_[kRamp]) state_->begin_pause(*breaker_, now);
  tell_own(before, now, changes);
}

// --- what has changed ---

void FleetState::Limits::tell(Circuit from, Time now, StateChanges& changes) const {
  const auto circuit = state_->circuit_now(*breaker_, now);
  auto& change = changes.circuit.emplace();
  change.key = without_kind(keys_.breaker);
  change.from = from;
  change.to = circuit.state;
  change.failed = circuit.failed;
  change.total = circuit.total;
  if (circuit.state == Circuit::Open) change.until = circuit.until;
  change.dry_run = keys_.policy->breaker->dry_run;
}

void FleetState::Limits::tell_own(Circuit from, Time now, StateChanges& changes) const {
  breaker_->circuit->news.told = true;
  tell(from, now, changes);
}

void FleetState::Limits::tell_news(Time now, StateChanges& changes) const {
  auto& circuit = *breaker_->circuit;
  if (std::exchange(circuit.news.told, true)) return;
  const auto now_state = state_->circuit_now(*breaker_, now).state;
  if (now_state == circuit.news.from) return;  // there and back
  changes.why = now_state == Circuit::Open       ? circuit.why
                : now_state == Circuit::HalfOpen ? "the time that it was open for is over"
                                                 : "the probes succeeded";
  tell(circuit.news.from, now, changes);
}

void FleetState::Limits::wait(int more) {
  const std::lock_guard lock(state_->mutex_);
  for (auto* const scope : scopes_) {
    scope->waiting += more;
    state_->waiting_ += more;
  }
}

SendLimits::Waiting FleetState::Limits::waiting() const {
  const std::lock_guard lock(state_->mutex_);
  return {rate_ ? rate_->waiting : 0, slots_ ? slots_->waiting : 0};
}

void FleetState::Limits::pause(std::size_t which, Time until, Time now) {
  const std::lock_guard lock(state_->mutex_);
  if (!pauses_[which]) return;
  state_->begin_pause(*pauses_[which], until);
  // While the remote state is away, the server itself has to tell the others.
  state_->remote_->pause(pauses_[which]->key, until - now);
}

GuardFacts FleetState::Limits::facts(Time now, WallTime wall_now) const {
  const std::lock_guard lock(state_->mutex_);
  GuardFacts facts;
  if (breaker_) {
    const auto circuit = state_->circuit_now(*breaker_, now);
    auto& told = facts.circuit.emplace();
    told.key = without_kind(keys_.breaker);
    told.state = circuit.state;
    told.failed = circuit.failed;
    told.total = circuit.total;
    if (circuit.state == Circuit::Open) told.until = wall_time(circuit.until, now, wall_now);
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

}  // namespace httpretry::fleet
