#include "fleet_account.hpp"
#include "fleet_limits.hpp"
#include "hearing.hpp"

#include "lib/flow/log.hpp"
#include "lib/guard/limit_rules.hpp"
#include "lib/http/random.hpp"

#include <httpretry/guard/local_state.hpp>

#include <algorithm>
#include <utility>

namespace httpretry::fleet {
namespace {

bool is_kind(std::string_view key, std::string_view kind) {
  return key.size() > kind.size() && key.starts_with(kind) && key[kind.size()] == ' ';
}

std::string why_opened(const BreakerPolicy& policy, const RemoteState::CircuitView& view) {
  if (policy.failures > 0 && view.failed_in_a_row >= policy.failures) {
    return std::to_string(view.failed_in_a_row) + " failures in a row, of all processes";
  }
  if (view.all == 0) return "it was opened by a program";
  const auto failed = view.all - view.good;
  const bool slow =
      static_cast<double>(failed) < policy.failure_ratio * static_cast<double>(view.all);
  return std::to_string(slow ? view.slow : failed) + " of " + std::to_string(view.all) +
         (slow ? " were slow, of all processes" : " failed, of all processes");
}

// The policy of a single request has no name that another process would know.
bool is_of_this_process(std::string_view budget_key) {
  return budget_key.starts_with("budget policy at ");
}

}  // namespace

FleetState::FleetState(std::unique_ptr<RemoteState> remote)
    : own_(local_state()), hearing_(std::make_shared<Hearing>(*this)), remote_(std::move(remote)) {
  remote_->listen(hearing_);
}

FleetState::~FleetState() {
  hearing_->close();
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [key, scope] : scopes_) {
    if (const auto unused = scope->tokens.give_back(); unused > 0) {
      remote_->take_tokens(key, *scope->policy->rate, 0, unused,
                           [](const RemoteState::Tokens&, Time) {});
    }
    if (scope->held.granted() > 0) ask_for_slots(scope, 0, now);
    if (scope->circuit && scope->circuit->votes.has_votes()) tell_votes(scope, false, now);
  }
  for (const auto& [key, account] : accounts_) account->tell(now);
  if (remote_->up()) remote_->flush(remote_->patience());
}

std::shared_ptr<SendLimits> FleetState::limits(LimitKeys keys, Time now) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Limits>(shared_from_this(), std::move(keys), now);
}

std::shared_ptr<RetryAccount> FleetState::account(const std::string& key,
                                                  const BudgetPolicy& policy, Time now) {
  if (is_of_this_process(key)) return own_->account(key, policy, now);
  if (policy.kind == BudgetPolicy::Kind::Concurrent) {
    std::call_once(told_of_concurrent_, [] {
      write_log(LogLevel::Info,
                "budgets of kind concurrent are not shared: each process counts "
                "what it has under way itself");
    });
  }
  struct Held {
    std::shared_ptr<FleetState> state;  // ends after the account
    std::shared_ptr<Account> account;
  };
  auto held = std::make_shared<Held>();
  held->state = shared_from_this();
  const std::lock_guard lock(accounts_mutex_);
  const auto [first, last] = accounts_.equal_range(key);
  auto found = std::find_if(first, last,
                            [&](const auto& entry) { return entry.second->policy() == policy; });
  if (found == last) {
    found = accounts_.emplace(key, std::make_shared<Account>(*this, key, policy, now));
  }
  held->account = found->second;
  auto* const account = held->account.get();
  return {std::move(held), account};
}

std::shared_ptr<HedgeAccount> FleetState::hedges(const std::string& key, Time now) {
  return own_->hedges(key, now);
}

std::size_t FleetState::scopes() const {
  const std::lock_guard lock(mutex_);
  return scopes_.size();
}

std::size_t FleetState::accounts() const {
  const std::lock_guard lock(accounts_mutex_);
  return accounts_.size();
}

std::shared_ptr<FleetState::Scope> FleetState::scope_of(const std::string& key, Time now) {
  auto& scope = scopes_[key];
  if (!scope) {
    scope = std::make_shared<Scope>();
    scope->key = key;
  }
  scope->last_used = now;
  return scope;
}

void FleetState::begin_pause(Scope& scope, Time until) {
  scope.pause.begin(until);
  if (std::exchange(scope.paused, true)) return;
  paused_.push_back(&scope);
  set_pauses(paused_.size());
}

void FleetState::end_pauses(Time now, StateChanges& changes) {
  std::erase_if(paused_, [&](Scope* scope) {
    if (!scope->pause.ramp_used(now) || scope->waiting > 0 || scope->under_way > 0) return false;
    scope->pause.end_ramp();
    scope->paused = false;
    if (!scope->circuit) changes.resumed.emplace_back(guard::without_kind(scope->key));
    return true;
  });
  set_pauses(paused_.size());
}

// --- asking ---

template <class Reply>
std::function<void(const Reply&, Time)> FleetState::when_replied(
    const std::shared_ptr<Scope>& scope, void (FleetState::*got)(Scope&, const Reply&, Time)) {
  return [hearing = hearing_, weak = std::weak_ptr(scope), got](const Reply& reply, Time now) {
    hearing->with_state([&](FleetState& state) {
      {
        const std::lock_guard lock(state.mutex_);
        const auto known = weak.lock();
        if (!known) return;
        (state.*got)(*known, reply, now);
        if (state.waiting_ == 0) return;
      }
      state.tell_changed(now);
    });
  };
}

void FleetState::ask_for_tokens(const std::shared_ptr<Scope>& scope, int waiting, Time now) {
  const auto& policy = *scope->policy->rate;
  const auto wanted = scope->tokens.wanted(policy, waiting, now);
  if (wanted > 0 && remote_->take_tokens(scope->key, policy, wanted, 0,
                                         when_replied(scope, &FleetState::got_tokens))) {
    scope->tokens.ask(now);
  }
}

void FleetState::ask_for_slots(const std::shared_ptr<Scope>& scope, int wanted, Time now) {
  if (remote_->hold_slots(scope->key, scope->policy->concurrency->max, scope->slots.used(), wanted,
                          when_replied(scope, &FleetState::got_slots))) {
    scope->held.ask(wanted, now);
  }
}

void FleetState::tell_votes(const std::shared_ptr<Scope>& scope, bool wants_probe, Time now) {
  const auto& policy = *scope->policy->breaker;
  auto& votes = scope->circuit->votes;
  if (!remote_->vote(scope->key, policy, votes.tell(policy, wants_probe, random_number(), now),
                     when_replied(scope, &FleetState::got_circuit))) {
    votes.not_told();
  }
}

// --- replies ---

void FleetState::got_tokens(Scope& scope, const RemoteState::Tokens& tokens, Time now) {
  scope.tokens.got(tokens, now);
}

void FleetState::got_slots(Scope& scope, const RemoteState::Slots& slots, Time now) {
  scope.held.got(slots, now);
}

void FleetState::got_circuit(Scope& scope, const RemoteState::CircuitView& view, Time now) {
  const auto before = scope.circuit->votes.view().state;
  if (scope.circuit->votes.got(view, now)) circuit_changed(scope, before, now);
}

// The breaker of this process goes on from there when the remote state is away.
void FleetState::circuit_changed(Scope& scope, Circuit from, Time now) {
  auto& circuit = *scope.circuit;
  const auto& view = circuit.votes.view();
  const auto& policy = *scope.policy->breaker;
  if (circuit.news.told) circuit.news = {from, false};
  switch (view.state) {
    case Circuit::Open:
      circuit.own.open_until(view.until);
      circuit.why = why_opened(policy, view);
      break;
    case Circuit::HalfOpen: circuit.own.open_until(now); break;
    case Circuit::Closed:
      circuit.own.close();
      if (policy.when_open == BreakerPolicy::WhenOpen::Wait) begin_pause(scope, now);
      break;
  }
}

// --- news ---

void FleetState::take_in(const RemoteState::News& news, Time now) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(last_remote_change_, news.change.number) != news.change.number) {
    set_last_change(news.change);
  }
  if (news.away) {
    for (const auto& [key, scope] : scopes_) {
      scope->tokens.clear();
      scope->held.clear();
    }
  } else {
    if (news.salt != 0) set_salt(news.salt);
    hear_pauses(news, now);
    hear_circuits(news, now);
    for (const auto& [key, scope] : scopes_) look_after(scope, now);
  }
  drop_unused(now);
}

void FleetState::hear_pauses(const RemoteState::News& news, Time now) {
  for (const auto& [key, until] : news.pauses) {
    const auto scope = scope_of(key, now);
    // A pause that this process has told comes back, later by the time of a reply.
    const auto known = later(scope->pause.until(), std::chrono::milliseconds(100));
    if (until > now && until > known) begin_pause(*scope, until);
  }
}

void FleetState::hear_circuits(const RemoteState::News& news, Time now) {
  std::vector<std::string_view> not_closed;
  for (const auto& [key, view] : news.circuits) {
    not_closed.emplace_back(key);
    const auto found = scopes_.find(key);
    if (found == scopes_.end() || !found->second->circuit) continue;
    auto& scope = *found->second;
    const auto before = scope.circuit->votes.view().state;
    if (scope.circuit->votes.heard(view)) circuit_changed(scope, before, now);
  }
  for (const auto& [key, scope] : scopes_) {
    if (!scope->circuit) continue;
    const auto& votes = scope->circuit->votes;
    if (votes.question().is_asked()) continue;
    const bool closed_since =
        votes.view().state != Circuit::Closed &&
        std::find(not_closed.begin(), not_closed.end(), key) == not_closed.end();
    if (closed_since || votes.has_votes()) tell_votes(scope, false, now);
  }
}

// Gives back what nobody needs, and says that what is held is still in use.
void FleetState::look_after(const std::shared_ptr<Scope>& scope, Time now) {
  if (const auto unused = scope->tokens.unused(now); unused > 0) {
    remote_->take_tokens(scope->key, *scope->policy->rate, 0, unused,
                         [](const RemoteState::Tokens&, Time) {});
  }
  if (scope->waiting > 0 && is_kind(scope->key, "rate")) {
    scope->tokens.doubt(now);
    ask_for_tokens(scope, scope->waiting, now);
  }
  auto& held = scope->held;
  const int used = scope->slots.used();
  if (held.granted() == 0 && used == 0) return;
  const int wanted = std::max(used + scope->waiting, held.contended() ? 0 : scope->most_used);
  scope->most_used = used;
  if (!held.question().is_asked()) ask_for_slots(scope, wanted, now);
}

void FleetState::drop_unused(Time now) {
  std::erase_if(scopes_, [&](const auto& entry) {
    const auto& scope = *entry.second;
    return entry.second.use_count() == 1 && now - scope.last_used >= kForgotten && !scope.paused &&
           scope.under_way == 0 && scope.waiting == 0 && !scope.tokens.has_some() &&
           scope.held.granted() == 0 && (!scope.circuit || !scope.circuit->votes.has_votes());
  });
}

void FleetState::look_after_accounts(Time now) {
  const std::lock_guard lock(accounts_mutex_);
  std::erase_if(accounts_, [&](const auto& entry) {
    entry.second->look_after(now);
    return entry.second.use_count() == 1 && entry.second->forgotten(now);
  });
}

bool FleetState::shares_circuit(const Scope& scope, Time now) const {
  return scope.policy->breaker->kind != BreakerPolicy::Kind::Share && remote_->up() &&
         !scope.circuit->votes.question().without(now, remote_->patience());
}

FleetState::CircuitNow FleetState::circuit_now(const Scope& scope, Time now) const {
  const auto& own = scope.circuit->own;
  if (shares_circuit(scope, now)) {
    const auto seen = scope.circuit->votes.seen();
    return {seen.state, static_cast<std::uint32_t>(seen.all - seen.good),
            static_cast<std::uint32_t>(seen.all), seen.until};
  }
  const auto counts = own.counts(now);
  return {own.state(), counts.failed(), counts.all, own.until()};
}

// --- for programs ---

std::vector<ScopeState> FleetState::states(std::string_view prefix, Time now) const {
  const std::lock_guard lock(mutex_);
  std::vector<ScopeState> states;
  for (const auto& [key, scope] : scopes_) {
    if (!key.starts_with(prefix)) continue;
    auto& state = states.emplace_back();
    state.key = key;
    state.waiting = scope->waiting;
    state.in_flight = scope->slots.used();
    if (scope->paused) state.until = scope->pause.until();
    if (!scope->circuit) continue;
    const auto circuit = circuit_now(*scope, now);
    state.circuit = circuit.state;
    state.failed = circuit.failed;
    state.total = circuit.total;
    if (circuit.state == Circuit::Open) state.until = circuit.until;
  }
  std::sort(states.begin(), states.end(),
            [](const ScopeState& a, const ScopeState& b) { return a.key < b.key; });
  return states;
}

bool FleetState::change(std::string_view key, Time now, const std::function<bool(Scope&)>& how) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = scopes_.find(std::string(key));
    if (found == scopes_.end() || !how(*found->second)) return false;
  }
  tell_changed(now);
  return true;
}

bool FleetState::reset(std::string_view key, Time now) {
  if (is_kind(key, "hedge")) return own_->reset(key, now);
  return change(key, now, [&](Scope& scope) {
    scope.pause.end();
    scope.rate = guard::Rate();
    scope.tokens.clear();
    scope.held.clear();
    scope.slots.forget();
    if (scope.circuit) {
      scope.circuit->own.close();
      scope.circuit->votes.clear();
    }
    remote_->forget(scope.key);
    return true;
  });
}

bool FleetState::open_circuit(std::string_view key, Time until, Time now) {
  return change(key, now, [&](Scope& scope) {
    if (!scope.circuit) return false;
    scope.circuit->own.open_until(until);
    scope.circuit->votes.open_until(until);
    scope.circuit->why = "it was opened by the program";
    remote_->open_circuit(scope.key, until - now);
    return true;
  });
}

bool FleetState::close_circuit(std::string_view key, Time now) {
  return change(key, now, [&](Scope& scope) {
    if (!scope.circuit) return false;
    scope.circuit->own.close();
    scope.circuit->votes.clear();
    remote_->forget(scope.key);
    return true;
  });
}

}  // namespace httpretry::fleet
