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

// Begins to connect to the Redis server. `own_` keeps the limits that are not shared.
FleetState::FleetState(Link::Options options)
    : own_(local_state()),
      // The lambda is called on the thread of the connection.
      remote_(std::move(options),
              [this](const auto& snapshot, Time now) { on_snapshot(snapshot, now); }) {}

// Gives back the tokens and slots that this process holds, so that other processes can use them at
// once. Otherwise the slots would be free only when their lease ends, and the tokens would be lost.
// Also sends what this process has counted and not sent: the votes for circuits, and the changes of
// retry budgets. Blocks until the server has replied, but only as long as a call may wait for it.
FleetState::~FleetState() {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);  // replies still arrive on the link's thread
    for (const auto& [key, scope] : scopes_) {
      const auto unused_tokens = scope->tokens.take_all();
      give_back_tokens(*scope, unused_tokens);
      give_back_reserved(scope, /*waiting=*/{}, now);  // all, because no send waits
      if (scope->held.granted > 0) request_slots(scope, /*wanted=*/0, now);
      const bool has_votes = scope->circuit && scope->circuit->votes.has_votes();
      if (has_votes) send_votes(scope, Probe::NotWanted, now);
    }
  }
  {
    // An account counts what this process has put into and taken from a retry budget.
    const std::lock_guard lock(accounts_mutex_);
    for (const auto& [key, account] : accounts_) account->flush(now);
  }
  // The queries above were only posted.
  if (remote_.up()) remote_.flush(/*limit=*/remote_.patience());
}

std::shared_ptr<SendLimits> FleetState::limits(LimitKeys keys, Time now) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Limits>(shared_from_this(), std::move(keys), now);
}

// Returns the account of a retry budget. The retries of all processes with the same key and policy
// draw from it. Creates the account if this process does not have it yet. The budget of a policy
// that a single request carries belongs to this process alone, and `own_` keeps it.
std::shared_ptr<RetryAccount> FleetState::account(const std::string& key,
                                                  const BudgetPolicy& policy, Time now) {
  if (is_of_this_process(key)) return own_->account(key, policy, now);
  // An Account of this kind counts for this process alone. Logs that once, for the user.
  if (policy.kind == BudgetPolicy::Kind::Concurrent) {
    std::call_once(concurrent_logged_, [] {
      write_log(LogLevel::Info,
                "budgets of kind concurrent are not shared: each process counts its own retries "
                "and hedges in flight");
    });
  }
  const std::lock_guard lock(accounts_mutex_);
  // A multimap: a key has an account for each policy.
  const auto [same_key_begin, same_key_end] = accounts_.equal_range(key);
  auto found = std::find_if(same_key_begin, same_key_end,
                            [&](const auto& entry) { return entry.second->policy() == policy; });
  if (found == same_key_end) {
    found = accounts_.emplace(key, std::make_shared<Account>(*this, key, policy, now));
  }
  // The account refers to this state, so the returned pointer owns both, and points to the account.
  using Owners = std::pair<std::shared_ptr<FleetState>, std::shared_ptr<Account>>;
  const auto owners = std::make_shared<Owners>(shared_from_this(), found->second);
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
  if (wanted == 0) return;
  const auto on_reply = [scope](const RedisState::Tokens& tokens, Time at) {
    scope->tokens.on_reply(tokens, at);
  };
  const bool is_sent =
      remote_.take_tokens(scope->key, policy, wanted, /*given_back=*/0, reply_handler(on_reply));
  if (is_sent) scope->tokens.query.start(now);
}

void FleetState::give_back_tokens(const Scope& scope, std::int64_t unused) {
  if (unused == 0) return;
  remote_.take_tokens(scope.key, *scope.policy->rate, /*wanted=*/0, unused,
                      [](const RedisState::Tokens&, Time) {});
}

void FleetState::reserve_tokens(const ScopePtr& scope, const RatePolicy& policy, std::int64_t cost,
                                Time now) {
  auto& reserved = scope->reserved;
  if (!reserved.query.can_start(now) || reserved.cover(policy, cost)) return;
  query_reserved(scope, policy, reserved.missing(policy, cost), /*gives_back=*/false, now);
}

void FleetState::give_back_reserved(const ScopePtr& scope, const guard::SendsAhead& waiting,
                                    Time now) {
  auto& reserved = scope->reserved;
  if (!reserved.has_some() || !reserved.query.can_start(now)) return;
  const auto& policy = *scope->policy->rate;
  const auto usable = reserved.usable(policy, waiting);
  if (usable == reserved.amounts() && reserved.ready_at() <= now) return;
  query_reserved(scope, policy, usable, /*gives_back=*/true, now);
}

// Requests tokens. With `gives_back`, exchanges all that this process has for them: they may then
// be used earlier if other processes have given tokens back.
void FleetState::query_reserved(const ScopePtr& scope, const RatePolicy& policy,
                                const RedisState::Amounts& wanted, bool gives_back, Time now) {
  if (!remote_.up()) return;
  auto& reserved = scope->reserved;
  const auto given_back = reserved.start_query(policy, wanted, gives_back, now);
  const bool is_sent = remote_.reserve_tokens(
      scope->key, policy, wanted, given_back,
      reply_handler([scope](const RedisState::Reservation& reservation, Time at) {
        scope->reserved.on_reply(reservation, at);
      }));
  if (!is_sent) reserved = {};  // the server is away, and this process decides by its share
}

void FleetState::request_slots(const ScopePtr& scope, int wanted, Time now) {
  const auto on_reply = [scope](const RedisState::Slots& slots, Time at) {
    scope->held.on_reply(slots, at);
  };
  const bool is_sent =
      remote_.hold_slots(scope->key, scope->policy->concurrency->max, scope->slots.machine.used(),
                         wanted, reply_handler(on_reply));
  if (is_sent) scope->held.start_query(wanted, now);
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
  const auto unsent_votes = votes.start_query(policy, probe == Probe::Wanted, random_number(), now);
  const bool is_sent = remote_.vote(scope->key, policy, unsent_votes, reply_handler(update));
  if (!is_sent) votes.cancel_query();  // the votes are dropped: this process now decides alone
}

// Called when the circuit breaker that all processes share has changed its state, which was
// `state_before`. Sets this process's own breaker to the same state. The own breaker decides only
// while the Redis server is away, and then it continues from this state.
void FleetState::on_circuit_changed(const ScopePtr& scope, Circuit state_before, Time now) {
  auto& circuit = *scope->circuit;
  auto& own_breaker = circuit.own.machine;
  const auto& view = circuit.votes.view();  // the new state, from the last reply
  const auto& policy = *scope->policy->breaker;
  // The next send notifies observers that the circuit has changed from this state. If it changes
  // several times until then, that is the oldest one.
  if (!circuit.changed_from) circuit.changed_from = state_before;
  switch (view.state) {
    case Circuit::Open:
      own_breaker.open_until(view.until);
      circuit.why = why_opened(policy, view);
      break;
    case Circuit::HalfOpen: own_breaker.open_until(now); break;  // half-open with the next send
    case Circuit::Closed:
      own_breaker.close();
      // The sends that wait must not go out all at once. A pause that ends now has a ramp, which
      // lets them out gradually. Without a key, observers are not notified of the pause.
      if (policy.when_open == BreakerPolicy::WhenOpen::Wait) {
        begin_pause(pause_of(scope), /*key=*/{}, /*until=*/now);
      }
      break;
  }
}

// --- circuits ---

bool FleetState::is_circuit_shared(const Scope& scope, Time now) const {
  return scope.policy->breaker->kind != BreakerPolicy::Kind::Share &&
         scope.circuit->votes.query.can_use(remote_, now);
}

// Returns the state of the shared circuit, or that of this process's own breaker while that
// decides.
ScopeState FleetState::circuit_now(const Scope& scope, Time now) const {
  if (!is_circuit_shared(scope, now)) return guard::circuit_of(scope.circuit->own.machine, now);
  const auto& votes = scope.circuit->votes;
  const auto counts = votes.sum_with_votes();
  ScopeState state;
  state.circuit = votes.view().state;
  state.failed = counts.failed();
  state.total = counts.all;
  if (state.circuit == Circuit::Open) state.until = votes.view().until;
  return state;
}

// --- for programs ---

// Returns the current states of the limits whose keys begin with `prefix`, sorted by key, for
// programs that display them. Each scope is one limit: a pause, a rate, slots (for sends in
// flight), or a circuit with the pause that follows it. The states of hedges are not shared.
std::vector<ScopeState> FleetState::states(std::string_view prefix, Time now) const {
  auto states = own_->states(prefix, now);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, scope] : scopes_) {
    if (!key.starts_with(prefix)) continue;
    auto& state = states.emplace_back(scope->circuit ? circuit_now(*scope, now) : ScopeState());
    state.key = key;
    // Only the limit that the scope has counts the sends that wait, and the others are 0. A circuit
    // and the pause after it count the same sends.
    const int circuit_waiting = scope->circuit ? scope->circuit->own.waiting : 0;
    state.waiting = std::max(
        {scope->pause.waiting, scope->rate.waiting, scope->slots.waiting, circuit_waiting});
    state.in_flight = scope->slots.machine.used();
    // circuit_now() has set `until` if the circuit is open. Otherwise it is kNever, the default.
    const auto& pause = scope->pause.machine;
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
  // The limits on hedged sends are not shared, so only this process has such a key.
  if (key.starts_with("hedge ")) return own_->reset(key, now);
  return change_scope(key, now, [&](Scope& scope) {
    scope.pause.machine.end();
    scope.rate.machine = guard::Rate();
    // The server has granted these: tokens of the rate, and slots for sends in flight (`held`).
    scope.tokens = {};
    scope.reserved = {};
    scope.held = {};
    scope.slots.machine.reset_limit();
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
