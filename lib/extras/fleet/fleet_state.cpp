#include "fleet_account.hpp"
#include "fleet_limits.hpp"

#include "lib/core/base/random.hpp"

#include <httpretry/guard/local_state.hpp>
#include <httpretry/log/log.hpp>

#include <algorithm>
#include <utility>

namespace httpretry::fleet {
namespace {

// Returns why the votes have opened a circuit, as a message: too many failures in a row, or too
// many failed or slow sends in the window.
std::string why_opened(const BreakerPolicy& policy, const RedisState::CircuitView& view) {
  if (policy.failures > 0 && view.failed_in_a_row >= policy.failures) {
    return std::to_string(view.failed_in_a_row) + " failures in a row, of all processes";
  }
  const auto& counts = view.counts;
  if (counts.all == 0) return "it was opened by a program";
  const bool slow = counts.failed() < policy.failure_ratio * counts.all;
  return std::to_string(slow ? counts.slow : counts.failed()) + " of " +
         std::to_string(counts.all) +
         (slow ? " were slow, of all processes" : " failed, of all processes");
}

// Returns whether a budget belongs to a policy that a single request carries. Other processes do
// not know its name.
bool is_of_this_process(std::string_view budget_key) {
  return budget_key.starts_with("budget policy at ");
}

}  // namespace

FleetState::FleetState(Link::Options options)
    : own_(local_state()),
      remote_(std::move(options),
              [this](const RedisState::News& news, Time now) { on_news(news, now); }) {}

// The remote state learns at once what this process no longer uses, and not only when leases end.
FleetState::~FleetState() {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, scope] : scopes_) {
      give_back_tokens(*scope, scope->tokens.take_all());
      if (scope->held.granted > 0) request_slots(scope, /*wanted=*/0, now);
      if (scope->circuit && scope->circuit->votes.has_votes())
        send_votes(scope, Probe::NotWanted, now);
    }
  }
  {
    const std::lock_guard lock(accounts_mutex_);
    for (const auto& [key, account] : accounts_) account->flush(now);
  }
  if (remote_.up()) remote_.flush(remote_.patience());
}

std::shared_ptr<SendLimits> FleetState::limits(LimitKeys keys, Time now) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Limits>(shared_from_this(), std::move(keys), now);
}

// Returns the account of a budget. The same key with another policy is another account. A budget
// that only this process can know is kept by the local state.
std::shared_ptr<RetryAccount> FleetState::account(const std::string& key,
                                                  const BudgetPolicy& policy, Time now) {
  if (is_of_this_process(key)) return own_->account(key, policy, now);
  if (policy.kind == BudgetPolicy::Kind::Concurrent) {
    std::call_once(concurrent_logged_, [] {
      write_log(LogLevel::Info,
                "budgets of kind concurrent are not shared: each process counts "
                "what it has under way itself");
    });
  }
  const std::lock_guard lock(accounts_mutex_);
  const auto [first, last] = accounts_.equal_range(key);
  auto found = std::find_if(first, last,
                            [&](const auto& entry) { return entry.second->policy() == policy; });
  if (found == last) {
    found = accounts_.emplace(key, std::make_shared<Account>(*this, key, policy, now));
  }
  // The returned pointer also owns this state, because the account refers to it.
  const auto owners =
      std::make_shared<std::pair<std::shared_ptr<FleetState>, std::shared_ptr<Account>>>(
          shared_from_this(), found->second);
  return {owners, owners->second.get()};
}

std::shared_ptr<HedgeAccount> FleetState::hedges(const std::string& key, Time now) {
  return own_->hedges(key, now);
}

FleetState::ScopePtr FleetState::scope_of(const std::string& key, Time now) {
  auto& scope = scopes_[key];
  if (!scope) {
    scope = std::make_shared<Scope>();
    scope->key = key;
  }
  scope->last_used = now;
  return scope;
}

// --- queries ---

// The handler notifies the waiting sends only after it has released the mutex, because they will
// lock it.
template <class Apply>
auto FleetState::reply_handler(Apply apply) {
  return [this, apply = std::move(apply)](const auto& reply, Time now) {
    {
      const std::lock_guard lock(mutex_);
      apply(reply, now);
      if (waiting_ == 0) return;
    }
    tell_changed(now);
  };
}

// Requests tokens if `waiting` sends, and those that are likely to follow, need more than there
// are.
void FleetState::request_tokens(const ScopePtr& scope, int waiting, Time now) {
  const auto& policy = *scope->policy->rate;
  const auto wanted = scope->tokens.wanted(policy, waiting, now);
  if (wanted > 0 &&
      remote_.take_tokens(scope->key, policy, wanted, /*given_back=*/0,
                          reply_handler([scope](const RedisState::Tokens& tokens, Time at) {
                            scope->tokens.on_reply(tokens, at);
                          }))) {
    scope->tokens.query.start(now);
  }
}

void FleetState::give_back_tokens(const Scope& scope, std::int64_t unused) {
  if (unused == 0) return;
  remote_.take_tokens(scope.key, *scope.policy->rate, /*wanted=*/0, unused,
                      [](const RedisState::Tokens&, Time) {});
}

void FleetState::request_slots(const ScopePtr& scope, int wanted, Time now) {
  if (remote_.hold_slots(scope->key, scope->policy->concurrency->max, scope->slots.machine.used(),
                         wanted, reply_handler([scope](const RedisState::Slots& slots, Time at) {
                           scope->held.on_reply(slots, at);
                         }))) {
    scope->held.start_query(wanted, now);
  }
}

// Sends the results of this process's sends to the other processes, and requests the state of the
// circuit. With Probe::Wanted, also requests that this process may probe an open circuit.
void FleetState::send_votes(const ScopePtr& scope, Probe probe, Time now) {
  const auto& policy = *scope->policy->breaker;
  auto& votes = scope->circuit->votes;
  const auto update = [this, scope](const RedisState::CircuitView& view, Time at) {
    const auto before = scope->circuit->votes.view().state;
    if (scope->circuit->votes.on_reply(view, at)) on_circuit_changed(scope, before, at);
  };
  if (!remote_.vote(scope->key, policy,
                    votes.start_query(policy, probe == Probe::Wanted, random_number(), now),
                    reply_handler(update))) {
    votes.cancel_query();
  }
}

// Brings this process's own breaker to the state of the shared circuit, which was `from` before.
// When the remote state goes away, the own breaker decides from there on.
void FleetState::on_circuit_changed(const ScopePtr& scope, Circuit from, Time now) {
  auto& circuit = *scope->circuit;
  auto& own = circuit.own.machine;
  const auto& view = circuit.votes.view();
  const auto& policy = *scope->policy->breaker;
  if (!circuit.changed_from) circuit.changed_from = from;
  switch (view.state) {
    case Circuit::Open:
      own.open_until(view.until);
      circuit.why = why_opened(policy, view);
      break;
    case Circuit::HalfOpen: own.open_until(now); break;
    case Circuit::Closed:
      own.close();
      if (policy.when_open == BreakerPolicy::WhenOpen::Wait) begin_pause(pause_of(scope), {}, now);
      break;
  }
}

// --- news ---

// Applies the news, lets each account refresh its balance, drops accounts that nothing uses, and
// wakes waiting sends.
void FleetState::on_news(const RedisState::News& news, Time now) {
  apply_news(news, now);
  {
    const std::lock_guard lock(accounts_mutex_);
    std::erase_if(accounts_, [&](const auto& entry) {
      entry.second->on_tick(now);
      return entry.second.use_count() == 1 && entry.second->is_unused(now);
    });
  }
  tell_changed(now);
}

// Applies what all processes have to know, or forgets tokens and slots if the remote state is away,
// because they count only there.
void FleetState::apply_news(const RedisState::News& news, Time now) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(last_remote_change_, news.change.number) != news.change.number) {
    set_last_change(news.change);
  }
  if (news.away) {
    for (const auto& [key, scope] : scopes_) {
      scope->tokens = {};
      scope->held = {};
    }
  } else {
    if (news.salt != 0) set_salt(news.salt);
    apply_pauses(news, now);
    apply_circuits(news, now);
    for (const auto& [key, scope] : scopes_) refresh(scope, now);
  }
  drop_unused(now);
}

// Begins the pauses that other processes have begun or extended.
void FleetState::apply_pauses(const RedisState::News& news, Time now) {
  for (const auto& [key, until] : news.pauses) {
    const auto scope = scope_of(key, now);
    // This process's own pauses come back, with ends that are later by the time of a reply.
    const auto known = later(scope->pause.machine.until(), std::chrono::milliseconds(100));
    if (until > now && until > known) {
      begin_pause(pause_of(scope), guard::without_kind(key), until);
    }
  }
}

// Applies the state of each circuit that is not closed. A circuit that this process saw open, and
// that is missing in the news, has closed: a query without votes then gets its state.
void FleetState::apply_circuits(const RedisState::News& news, Time now) {
  for (const auto& [key, scope] : scopes_) {
    if (!scope->circuit) continue;
    auto& votes = scope->circuit->votes;
    const auto found = std::find_if(news.circuits.begin(), news.circuits.end(),
                                    [&name = key](const auto& one) { return one.first == name; });
    const bool is_closed = found == news.circuits.end();
    const auto state_before = votes.view().state;
    if (!is_closed && votes.update(found->second)) on_circuit_changed(scope, state_before, now);
    if (votes.query.is_pending()) continue;
    const bool closed_since = is_closed && votes.view().state != Circuit::Closed;
    if (closed_since || votes.has_votes()) send_votes(scope, Probe::NotWanted, now);
  }
}

// Gives back unused tokens and slots, and renews the lease of the slots in use.
void FleetState::refresh(const ScopePtr& scope, Time now) {
  give_back_tokens(*scope, scope->tokens.take_unused(now));
  if (scope->rate.waiting > 0) {
    scope->tokens.forget_stale_reply(now);
    request_tokens(scope, scope->rate.waiting, now);
  }
  auto& held = scope->held;
  const int used = scope->slots.machine.used();
  if (held.granted == 0 && used == 0) return;
  const int wanted = std::max(used + scope->slots.waiting, held.contended ? 0 : scope->most_used);
  scope->most_used = used;
  if (!held.query.is_pending()) request_slots(scope, wanted, now);
}

void FleetState::drop_unused(Time now) {
  std::erase_if(scopes_, [&](const auto& entry) {
    auto& scope = *entry.second;
    if (entry.second.use_count() > 1) scope.last_used = now;
    return now - scope.last_used >= kDropUnusedAfter && !scope.tokens.has_some() &&
           scope.held.granted == 0 && (!scope.circuit || !scope.circuit->votes.has_votes());
  });
}

bool FleetState::is_circuit_shared(const Scope& scope, Time now) const {
  return scope.policy->breaker->kind != BreakerPolicy::Kind::Share &&
         scope.circuit->votes.query.can_use(remote_, now);
}

// Returns the state of the shared circuit, or that of this process's own breaker while that
// decides.
ScopeState FleetState::circuit_now(const Scope& scope, Time now) const {
  if (!is_circuit_shared(scope, now)) return guard::circuit_of(scope.circuit->own.machine, now);
  const auto& votes = scope.circuit->votes;
  const auto counts = votes.sum();
  ScopeState state;
  state.circuit = votes.view().state;
  state.failed = counts.failed();
  state.total = counts.all;
  if (state.circuit == Circuit::Open) state.until = votes.view().until;
  return state;
}

// --- for programs ---

// Returns the states of all scopes whose keys begin with `prefix`, sorted by key.
std::vector<ScopeState> FleetState::states(std::string_view prefix, Time now) const {
  const std::lock_guard lock(mutex_);
  std::vector<ScopeState> states;
  for (const auto& [key, scope] : scopes_) {
    if (!key.starts_with(prefix)) continue;
    auto& state = states.emplace_back(scope->circuit ? circuit_now(*scope, now) : ScopeState());
    state.key = key;
    const int circuit_waiting = scope->circuit ? scope->circuit->own.waiting : 0;
    // A send waits for one limit of the scope, and the key says which.
    state.waiting = std::max(
        {scope->pause.waiting, scope->rate.waiting, scope->slots.waiting, circuit_waiting});
    state.in_flight = scope->slots.machine.used();
    const auto& pause = scope->pause.machine;
    // An open circuit has set `until` already.
    if (state.until == kNever && !pause.idle(now)) state.until = pause.until();
  }
  std::sort(states.begin(), states.end(),
            [](const ScopeState& a, const ScopeState& b) { return a.key < b.key; });
  return states;
}

bool FleetState::change_scope(std::string_view key, Time now,
                              const std::function<bool(Scope&)>& how) {
  return change(now, [&] {
    const auto found = scopes_.find(std::string(key));
    return found != scopes_.end() && how(*found->second);
  });
}

// Resets all limits of a key, here and on the server. Returns false if there is no such key.
bool FleetState::reset(std::string_view key, Time now) {
  if (key.starts_with("hedge ")) return own_->reset(key, now);
  return change_scope(key, now, [&](Scope& scope) {
    scope.pause.machine.end();
    scope.rate.machine = guard::Rate();
    scope.tokens = {};
    scope.held = {};
    scope.slots.machine.forget();
    if (scope.circuit) scope.circuit->close();
    remote_.forget(scope.key);
    return true;
  });
}

// Opens the circuit here and in all processes until a time. Returns false if the key has no
// circuit.
bool FleetState::open_circuit(std::string_view key, Time until, Time now) {
  return change_scope(key, now, [&](Scope& scope) {
    if (!scope.circuit) return false;
    scope.circuit->own.machine.open_until(until);
    scope.circuit->votes.open_until(until);
    scope.circuit->why = "it was opened by the program";
    remote_.open_circuit(scope.key, until - now);
    return true;
  });
}

bool FleetState::close_circuit(std::string_view key, Time now) {
  return change_scope(key, now, [&](Scope& scope) {
    if (!scope.circuit) return false;
    scope.circuit->close();
    remote_.forget(scope.key);
    return true;
  });
}

}  // namespace httpretry::fleet
