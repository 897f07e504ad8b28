// SharedState holds the limits that calls share: budgets for retries, send rates, rates, circuit
// breakers, pauses, and limits of concurrent sends.
//
// By default, each client keeps its own in memory. With ClientOptions::shared_state, several
// clients share them:
//
//   options.shared_state = local_state();  // one for all clients of this process that receive it
//
// An implementation can keep the limits in an external store, so that many processes share them. It
// must guarantee the following:
//
// - Each function is one atomic step. Any number of threads may call any of them at once.
// - No function waits for a network, or for a lock that is held for longer than one step. External
//   state therefore has a local copy: tokens are taken in advance; votes are summed up and
//   delivered later. State that is not yet known holds a send back for a short time, or until
//   `tell_changed`. While the store is unreachable, the implementation decides locally.
// - `enter` takes a token, a slot, a probe and a place in a ramp together, or none of them. One
//   `leave` gives back what was taken.
// - The numbers of the policy that is passed in apply, not those of an earlier policy. Reloading a
//   policy file thus changes the numbers and keeps the state. Only the keys identify states, except
//   that budgets with the same key and different numbers are separate (`account_after`).
// - A Time refers to the clock of this process. Only durations are passed to the store.
// - New keys may appear without end. The implementation drops keys that are not in use, first those
//   whose state is the initial one. An unknown key has the initial state.
//
// No function throws anything except std::bad_alloc.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/observer.hpp>
#include <httpretry/http/attempt.hpp>
#include <httpretry/retry/guard_policy.hpp>
#include <httpretry/retry/hedge_policy.hpp>
#include <httpretry/retry/retry_account.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// A request to make a send.
struct HTTPRETRY_API SendAsk {
  SendAsk() = default;

  Time now{};
  bool is_retry = false;  // not the first send of its call
  Priority priority = Priority::Normal;
  std::int64_t cost = 1;  // taken from the rates that count costs
  double random = 0;      // uniform in [0, 1)
};

// The reply to a SendAsk, and what the send has taken.
struct HTTPRETRY_API SendGrant {
  SendGrant() = default;

  // The guard that holds the send back. Nothing means that the send may be made and has taken
  // everything that it needs.
  QueuedBy held = QueuedBy::Nothing;
  Time until = kNever;  // if the send is held: when to try again, unless something changes earlier
  double refused_share = 0;  // for a breaker of kind Share
  std::string why_open;      // if a circuit holds the send: what opened it; empty if unknown
  // Data for `leave`.
  bool votes = false;  // a breaker needs the result of the send
  std::uint32_t generation = 0;
  std::uint32_t probe = 0;
  std::array<std::uint32_t, 3> ramps{};
};

// The result of a send.
struct HTTPRETRY_API SendEnd {
  SendEnd() = default;

  bool counts = true;       // false if the result says nothing about the server
  bool failed = false;      // counts as a failure for the breaker
  bool dropped = false;     // counts as a drop for the limit of concurrent sends
  bool responded = false;   // got a response that was not a throttle, so that a ramp may grow
  Duration took{};          // until the headers of the response
  Duration server_delay{};  // the wait that the server asked for; zero: none
};

// The changes made by one step, for observers. The keys are valid as long as the SendLimits.
struct HTTPRETRY_API StateChanges {
  StateChanges() = default;

  std::optional<CircuitChange> circuit;  // without `why`
  std::string why;                       // the reason for the change of the circuit
  std::optional<LimitChange> limit;
  std::vector<std::string> resumed;  // the keys of pauses that have ended
};

// The keys of the states that the sends under one policy share. Each begins with its kind: "rate
// https://api.example.com /policies/careful". A key is empty if the policy has no limit of that
// kind.
struct HTTPRETRY_API LimitKeys {
  LimitKeys() = default;

  std::shared_ptr<const GuardPolicy> policy;
  std::array<std::string, 2> pauses;
  std::string rate;
  std::string slots;
  std::string breaker;
};

// SendLimits decides when sends under one policy may be made. Implementations are created by
// SharedState.
class HTTPRETRY_API SendLimits {
 public:
  virtual ~SendLimits();
  // Tries to take everything that a send needs.
  virtual SendGrant enter(const SendAsk& ask, StateChanges& changes) = 0;
  // Returns what `enter` would return, but takes nothing.
  [[nodiscard]] virtual SendGrant look(const SendAsk& ask) const = 0;
  // Passes the breaker's vote for a send that is still in flight. `leave` then passes no further
  // vote.
  virtual void vote_early(SendGrant& grant, const SendEnd& end, Time now, double random,
                          StateChanges& changes) = 0;
  // Called once for each grant. `end` is nullptr if the send was not made or its result is unknown.
  virtual void leave(const SendGrant& grant, const SendEnd* end, Time now, double random,
                     StateChanges& changes) = 0;
  // Changes the number of this client's sends that wait for these limits, and the sum of what they
  // cost, by positive or negative numbers.
  virtual void wait(int more, std::int64_t more_cost) = 0;
  // The sends that wait for these limits.
  struct Waiting {
    Time token_at{};    // when the rate may allow a new send, if the sends that wait go first
    int for_slots = 0;  // sends that wait for the limit of concurrent sends
  };
  // Returns the sends that wait, as seen by a send that asks now.
  [[nodiscard]] virtual Waiting waiting(const SendAsk& ask) const = 0;
  // Records a pause that the server asked for. `which` is the index in LimitKeys::pauses.
  virtual void pause(std::size_t which, Time until, Time now) = 0;
  // Returns the state of these limits for the history of a call.
  [[nodiscard]] virtual GuardFacts facts(Time now, WallTime wall_now) const = 0;
};

// How long a send may have no response before the next one is made beside it (HedgePolicy).
struct HTTPRETRY_API HedgeDelay {
  HedgeDelay() = default;

  Duration after = kForever;            // kForever: no hedge
  std::optional<HedgeRefused> refused;  // set if no hedge will be sent after that time
  std::uint32_t samples = 0;            // the number of samples behind `after`, or 0
};

// HedgeAccount holds the response times and the hedge budget of one scope.
class HTTPRETRY_API HedgeAccount {
 public:
  virtual ~HedgeAccount();
  // Called once for each call.
  virtual void begin_call(Time now) = 0;
  // Called when a send has received its response after this time, or was given up.
  virtual void add_sample(Duration to_headers, Time now) = 0;
  // Returns how long a send may have no response before it is hedged.
  [[nodiscard]] virtual HedgeDelay delay(const HedgePolicy& policy, Time now) = 0;
  // Returns the median of the response times, or nullopt if it is unknown.
  [[nodiscard]] virtual std::optional<Duration> median(Time now) = 0;
  // Called if the server asks for fewer requests.
  virtual void throttle(Time until) = 0;
  // Returns whether the time of the last `throttle` has not passed yet.
  [[nodiscard]] virtual bool throttled(Time now) = 0;
  // Takes a hedge from HedgePolicy::budget. Returns false if nothing was taken.
  virtual bool take(const HedgePolicy& policy, Time now) = 0;
  // Called if the hedge was not sent.
  virtual void give_back(const HedgePolicy& policy, Time now) = 0;
};

// The public view of one state.
struct HTTPRETRY_API ScopeState {
  ScopeState() = default;

  std::string key;  // begins with the kind
  std::optional<Circuit> circuit;
  std::uint32_t failed = 0;  // in the window of a circuit breaker
  std::uint32_t total = 0;   // all sends in that window
  // For a pause and an open circuit: its end. For a rate: when all tokens are available again;
  // kNever if processes share it. For hedges: until when the server wants fewer requests.
  Time until = kNever;
  int in_flight = 0;  // for a limit of concurrent sends
  int waiting = 0;    // the number of waiting sends
  // For hedges:
  std::int64_t calls = 0;     // in the last ten seconds
  std::int64_t hedges = 0;    // of these calls; HedgePolicy::budget limits their share
  std::uint32_t samples = 0;  // in the last 30 s; the quantile is computed from them
};

// SharedState is the interface described above. local_state() returns an implementation in memory.
class HTTPRETRY_API SharedState {
 public:
  SharedState();
  virtual ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  // `limits`, `account` and `hedges` return the state behind a key. The caller keeps the object for
  // as long as it sends.
  [[nodiscard]] virtual std::shared_ptr<SendLimits> limits(LimitKeys keys, Time now) = 0;
  [[nodiscard]] virtual std::shared_ptr<RetryAccount> account(const std::string& key,
                                                              const BudgetPolicy& policy,
                                                              Time now) = 0;
  // Called instead of `account` if a policy file has changed the numbers of budgets. `changes`
  // lists the changes, the latest last. An account with the old numbers continues with the new
  // ones, including its retries and hedges in flight. The default implementation creates a new
  // account for new numbers.
  [[nodiscard]] virtual std::shared_ptr<RetryAccount> account_after(
      std::span<const ChangedBudget> changes, const std::string& key, const BudgetPolicy& policy,
      Time now);

  // Returns the response times and the hedge budget behind a key, as `limits` does.
  [[nodiscard]] virtual std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) = 0;

  // The following functions are for programs. Returns all states whose keys begin with `prefix`.
  [[nodiscard]] virtual std::vector<ScopeState> states(std::string_view prefix, Time now) const = 0;
  // Returns a state to its initial value. Returns false if there is no such key.
  virtual bool reset(std::string_view key, Time now) = 0;
  // Force a breaker open until a time, whatever sends report until then, and closed. Return false
  // if there is no such key.
  virtual bool open_circuit(std::string_view key, Time until, Time now) = 0;
  virtual bool close_circuit(std::string_view key, Time now) = 0;

  // Keys distinguish credentials by a hash, so that no key contains credentials. All clients that
  // share a state use the same salt for the hash.
  [[nodiscard]] std::uint64_t salt() const { return salt_.load(std::memory_order_relaxed); }

  // For an external store: `changes` returns how often it became unreachable or reachable again,
  // and `last_change` the last such change.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  [[nodiscard]] SharedStateChange last_change() const;

  // Returns whether no pause is in effect. A send without other limits then need not call `enter`.
  [[nodiscard]] bool quiet() const { return pauses_.load(std::memory_order_relaxed) == 0; }

  // A function that is called when something may have changed, through another client or in the
  // external store. It is not called while a lock of the state is held.
  using Listener = std::function<void(Time now)>;
  // Registers a function. It is called until its last owner releases it.
  void listen(const std::shared_ptr<const Listener>& listener);
  // Notifies all listeners except the one that made the change.
  void tell_changed(Time now, const Listener* except = nullptr) const;

 protected:
  void set_pauses(std::size_t number) {
    pauses_.store(static_cast<int>(number), std::memory_order_relaxed);
  }
  void set_salt(std::uint64_t salt) { salt_.store(salt, std::memory_order_relaxed); }
  // Sets the change and assigns its number.
  void set_last_change(SharedStateChange change);

 private:
  std::atomic<int> pauses_ = 0;
  std::atomic<std::uint64_t> salt_;
  std::atomic<std::uint64_t> changes_ = 0;
  mutable std::mutex mutex_;  // guards the next two members
  SharedStateChange last_change_;
  std::vector<std::weak_ptr<const Listener>> listeners_;
};

}  // namespace httpretry
