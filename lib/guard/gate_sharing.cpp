#include "gate_sharing.hpp"

#include "lib/http/random.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

// The first lane that has the limit in this scope; all have the same numbers, unless a policy file
// has just been read again.
template <class Lanes, class Member, class ScopeType>
auto* lane_with(const Lanes& lanes, Member member, const ScopeType& scope) {
  const auto found = std::find_if(lanes.begin(), lanes.end(),
                                  [&](const auto* lane) { return lane->*member == &scope; });
  return found == lanes.end() ? nullptr : *found;
}

}  // namespace

// --- what holds a send ---

bool Gate::shares_circuit(const Lane& lane) {
  return lane.breaker->shared && lane.breaker->shared->on() &&
         lane.policy->breaker->kind != BreakerPolicy::Kind::Share;
}

Wait Gate::held_by_circuit(const Lane& lane, Time now) {
  const auto& policy = *lane.policy->breaker;
  if (shares_circuit(lane)) {
    const auto answer = lane.breaker->shared->circuit.ask(now);
    return answer.allowed ? Wait() : Wait{Held::Circuit, answer.until, answer.asks};
  }
  const auto until = lane.breaker->breaker->held_until(policy, now);
  return until > now ? Wait{Held::Circuit, until} : Wait();
}

Wait Gate::held_by_rate(const Lane& lane, Time now) {
  const auto& scope = *lane.rate;
  if (scope.shared && scope.shared->on()) {
    const auto& tokens = scope.shared->tokens;
    const auto ready = tokens.ready_at(now);
    return ready > now ? Wait{Held::Rate, ready, tokens.unknown(now)} : Wait();
  }
  auto policy = *lane.policy->rate;
  if (scope.shared) policy = share_of(policy, scope.shared->state->workers());
  const auto ready = scope.rate.ready_at(policy);
  return ready > now ? Wait{Held::Rate, ready} : Wait();
}

Wait Gate::held_by_slots(const Lane& lane, Time now) {
  const auto& scope = *lane.slots;
  auto policy = *lane.policy->concurrency;
  const bool shared = scope.shared && scope.shared->on();
  if (shared && scope.slots.used() >= scope.shared->slots.granted()) {
    const auto soon = now + std::chrono::milliseconds(1);
    return {Held::Slots, std::max(scope.shared->slots.next_ask(), soon)};
  }
  if (scope.shared && !shared) policy = share_of(policy, scope.shared->state->workers());
  const bool low = lane.policy->priority == Priority::Low && scope.waiting > 1;
  return scope.slots.free(policy, low) ? Wait() : Wait{Held::Slots, kNever};
}

// The shared state may come or go between the question and this.
void Gate::take_token(const Lane& lane, Time now) {
  auto& scope = *lane.rate;
  auto policy = *lane.policy->rate;
  if (scope.shared && scope.shared->on() && scope.shared->tokens.count() > 0) {
    return scope.shared->tokens.take(now);
  }
  if (scope.shared) policy = share_of(policy, scope.shared->state->workers());
  scope.rate.take(policy, now);
}

// --- asking ---

void Gate::Sharing::close() {
  const std::lock_guard lock(mutex_);
  gate_ = nullptr;
}

template <class Reply>
std::function<void(const Reply&, Time)> Gate::Sharing::when_replied(
    const Scope& scope, void (Sharing::*take_in)(Scope&, const Reply&, Time)) {
  return [self = shared_from_this(), key = scope.key, take_in](const Reply& reply, Time now) {
    const std::lock_guard alive(self->mutex_);
    if (self->gate_ == nullptr) return;
    const std::lock_guard lock(self->gate_->mutex_);
    const auto found = self->gate_->scopes_.find(key);
    if (found != self->gate_->scopes_.end() && found->second->shared) {
      (self.get()->*take_in)(*found->second, reply, now);
    }
  };
}

void Gate::Sharing::ask(const Lane& lane, Time now) {
  const auto& policy = *lane.policy;
  if (lane.rate != nullptr) {
    auto& scope = *lane.rate;
    auto& tokens = scope.shared->tokens;
    const auto wanted = tokens.wanted(*policy.rate, scope.waiting, now);
    if (wanted > 0 && state_->take_tokens(scope.key, *policy.rate, wanted, 0,
                                          when_replied(scope, &Sharing::got_tokens))) {
      tokens.asked();
    }
  }
  if (lane.slots != nullptr) {
    auto& scope = *lane.slots;
    const int wanted = scope.slots.used() + scope.waiting;
    if (scope.shared->slots.asks(wanted, now)) {
      ask_for_slots(scope, *policy.concurrency, wanted, now);
    }
  }
  if (lane.breaker != nullptr && lane.breaker->waiting > 0 && shares_circuit(lane)) {
    auto& circuit = lane.breaker->shared->circuit;
    if (circuit.ask(now).asks && !circuit.is_asked()) {
      tell_votes(*lane.breaker, *policy.breaker, true, random_number());
    }
  }
}

void Gate::Sharing::ask_for_slots(Scope& scope, const ConcurrencyPolicy& policy, int wanted,
                                  Time now) {
  if (state_->hold_slots(scope.key, policy.max, scope.slots.used(), wanted,
                         when_replied(scope, &Sharing::got_slots))) {
    scope.shared->slots.asked(now);
  }
}

void Gate::Sharing::tell_votes(Scope& scope, const BreakerPolicy& policy, bool wants_probe,
                               double chance) {
  const auto votes = scope.shared->circuit.tell(policy, wants_probe, chance);
  if (!state_->vote(scope.key, policy, votes, when_replied(scope, &Sharing::got_circuit))) {
    scope.shared->circuit.lost();
  }
}

void Gate::Sharing::vote(Scope& scope, const BreakerPolicy& policy, const Ticket& ticket,
                         const Ended& ended, double chance) {
  const Vote vote{ended.failed, ended.took, ended.server_delay};
  if (scope.shared->circuit.vote(policy, ticket, vote)) tell_votes(scope, policy, false, chance);
}

void Gate::Sharing::pause(const Scope& scope, Duration duration) {
  // Where it is away, the others have to be told by the server themselves.
  state_->pause(scope.key, duration);
}

void Gate::Sharing::slot_freed(Scope& scope, const ConcurrencyPolicy& policy) {
  const auto& slots = scope.shared->slots;
  if (!slots.contended() || scope.slots.used() >= slots.granted()) return;
  state_->hold_slots(scope.key, policy.max, scope.slots.used(), scope.slots.used() + scope.waiting,
                     when_replied(scope, &Sharing::got_slots));
}

// --- replies ---

void Gate::Sharing::changed(Scope& scope, Time now) {
  gate_->serve(scope, now);
  Gate::refuse_in_vain(scope, now);
  for (const auto* lane : scope.lanes) ask(*lane, now);
}

void Gate::Sharing::got_tokens(Scope& scope, const SharedState::Tokens& tokens, Time now) {
  if (tokens.away) {
    scope.shared->tokens.lost();
  } else {
    scope.shared->tokens.got(tokens);
  }
  changed(scope, now);
}

void Gate::Sharing::got_slots(Scope& scope, const SharedState::Slots& slots, Time now) {
  if (slots.away) {
    scope.shared->slots.lost();
  } else {
    scope.shared->slots.got(slots);
  }
  changed(scope, now);
}

void Gate::Sharing::got_circuit(Scope& scope, const SharedState::CircuitView& view, Time now) {
  if (view.away) {
    scope.shared->circuit.lost();
  } else {
    scope.shared->circuit.got(view, now);
    follow(scope, now);
  }
  changed(scope, now);
}

// The breaker of this process goes on from there when the shared state is away.
void Gate::Sharing::follow(Scope& scope, Time now) {
  const auto& view = scope.shared->circuit.view();
  auto& breaker = *scope.breaker;
  if (view.state != SharedState::Circuit::Closed) {
    breaker.open_until(view.state == SharedState::Circuit::Open ? view.until : now);
  } else if (breaker.state() != Circuit::Closed) {
    breaker.close();
  }
}

// --- news ---

void Gate::Sharing::on_news(const SharedState::News& news, Time now) {
  const std::lock_guard alive(mutex_);
  if (gate_ == nullptr) return;
  const std::lock_guard lock(gate_->mutex_);
  take_in_news(news, now);
}

void Gate::Sharing::take_in_news(const SharedState::News& news, Time now) {
  for (const auto& [key, until] : news.pauses) {
    auto& scope = gate_->scope_of(key);
    // The clocks of two processes agree within the time of a reply.
    const auto known = scope.pause.until() + std::chrono::milliseconds(100);
    if (until > now && until > known) gate_->pause(scope, until, now);
  }
  std::vector<std::string_view> not_closed;
  for (const auto& [key, view] : news.circuits) {
    not_closed.emplace_back(key);
    const auto found = gate_->scopes_.find(key);
    if (found == gate_->scopes_.end() || !found->second->shared) continue;
    auto& scope = *found->second;
    if (!scope.breaker || !scope.shared->circuit.heard(view)) continue;
    follow(scope, now);
    changed(scope, now);
  }
  for (const auto& entry : gate_->scopes_) {
    auto& scope = *entry.second;
    if (!scope.shared || scope.lanes.empty()) continue;
    if (news.away) {
      scope.shared->tokens.clear();
      scope.shared->slots.clear();
      changed(scope, now);
    } else {
      look_after(scope, now);
    }
    if (news.away || !scope.breaker) continue;
    auto& circuit = scope.shared->circuit;
    const bool closed_since =
        circuit.view().state != SharedState::Circuit::Closed &&
        std::find(not_closed.begin(), not_closed.end(), scope.key) == not_closed.end();
    const auto* lane = lane_with(scope.lanes, &Lane::breaker, scope);
    if (lane == nullptr || circuit.is_asked() || (!closed_since && !circuit.has_votes())) continue;
    tell_votes(scope, *lane->policy->breaker, false, random_number());
  }
}

void Gate::Sharing::look_after(Scope& scope, Time now) {
  auto& shared = *scope.shared;
  if (const auto* lane = lane_with(scope.lanes, &Lane::rate, scope)) {
    const auto unused = shared.tokens.give_back(now);
    if (unused > 0) {
      state_->take_tokens(scope.key, *lane->policy->rate, 0, unused,
                          [](const SharedState::Tokens&, Time) {});
    }
  }
  if (const auto* lane = lane_with(scope.lanes, &Lane::slots, scope)) {
    if (shared.slots.granted() > 0 || scope.slots.used() > 0) {
      const int wanted = scope.slots.used() + scope.waiting;
      ask_for_slots(scope, *lane->policy->concurrency, wanted, now);
    }
  }
}

}  // namespace httpretry::guard
