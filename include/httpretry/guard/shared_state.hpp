// SharedState: where the limits are kept that calls share: budgets for retries, send rates, rates,
// circuit breakers, pauses, and limits of concurrent sends.
//
// Without one, each client keeps its own in memory. ClientOptions::shared_state makes several
// clients share them:
//
//   options.shared_state = local_state();  // one for all clients of this process that get it
//
// An implementation may keep them elsewhere, so that many processes share them. It must promise:
//
// - Each function is one atomic step. Any number of threads may call any of them at once.
// - None waits for a network, or for a lock that is held for longer than a step. What is elsewhere
//   has a copy here: tokens are taken ahead, votes are added up and handed over later. What is not
//   known yet holds the send back for a short time, or until `tell_changed`. While the other place
//   cannot be reached, it decides by itself.
// - `enter` takes a token, a slot, a probe and a place in a ramp together, or none of them. One
//   `leave` gives back what was taken.
// - The numbers of the policy that is passed in count, not those of the one before. So a file that
//   is read again changes the numbers and keeps the state. Only the keys tell states apart; but
//   budgets of one key with different numbers are different ones (`account_after`).
// - A Time is of this process's clock. What leaves the process is a duration.
// - There may be ever new keys. It drops those that nobody uses, first those that are as new; a key
//   that is not known is as new.
//
// No function throws, except std::bad_alloc.
#pragma once

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

// A send that asks whether it may go out.
struct HTTPRETRY_API SendAsk {
  SendAsk() = default;

  Time now{};
  bool is_retry = false;
  Priority priority = Priority::Normal;
  double random = 0;  // uniform in [0, 1)
};

// What it is told, and what it has taken then.
struct HTTPRETRY_API SendGrant {
  SendGrant() = default;

  QueuedBy held = QueuedBy::Nothing;  // Nothing: it may go out, and has taken all
  Time until = kNever;                // while it is held: ask again then, or when something changes
  double refused_share = 0;           // of a breaker of kind Share
  // Numbers for `leave`.
  bool votes = false;  // a breaker wants to know how it ends
  std::uint32_t generation = 0;
  std::uint32_t probe = 0;
  std::array<std::uint32_t, 3> ramps{};
};

// How it ended.
struct HTTPRETRY_API SendEnd {
  SendEnd() = default;

  bool counts = true;      // it says something about the server
  bool failed = false;     // for the breaker
  bool dropped = false;    // for the limit of concurrent sends
  bool responded = false;  // and was not throttled: a ramp grows
  Duration took{};         // to the headers of the response
  Duration server_delay{};
};

// What a step has changed, for observers. The keys live as long as the SendLimits.
struct HTTPRETRY_API StateChanges {
  StateChanges() = default;

  std::optional<CircuitChange> circuit;  // without `why`
  std::string why;
  std::optional<LimitChange> limit;
  std::vector<std::string> resumed;  // the keys of pauses that are over
};

// The states that the sends under one policy share. Each key has the kind in front: "rate
// https://api.example.com /policies/careful". Empty where there is none of that kind.
struct HTTPRETRY_API LimitKeys {
  LimitKeys() = default;

  std::shared_ptr<const GuardPolicy> policy;
  std::array<std::string, 2> pauses;
  std::string rate;
  std::string slots;
  std::string breaker;
};

class HTTPRETRY_API SendLimits {
 public:
  virtual ~SendLimits();
  virtual SendGrant enter(const SendAsk& ask, StateChanges& changes) = 0;
  // What `enter` would say. Takes nothing.
  [[nodiscard]] virtual SendGrant look(const SendAsk& ask) const = 0;
  // The breaker's vote of a send that is still under way. It has no further one in `leave`.
  virtual void vote_early(SendGrant& grant, const SendEnd& end, Time now, double random,
                          StateChanges& changes) = 0;
  // Once for each grant. Without `end` it did not go out, or how it ended is not known.
  virtual void leave(const SendGrant& grant, const SendEnd* end, Time now, double random,
                     StateChanges& changes) = 0;
  // So many more sends of this client wait for it, or fewer.
  virtual void wait(int more) = 0;
  struct Waiting {
    int for_rate = 0;
    int for_slots = 0;
  };
  [[nodiscard]] virtual Waiting waiting() const = 0;
  // The server asks for a pause. `which`: of LimitKeys::pauses.
  virtual void pause(std::size_t which, Time until, Time now) = 0;
  [[nodiscard]] virtual GuardFacts facts(Time now, WallTime wall_now) const = 0;
};

// When the next send goes out beside one that has no response (HedgePolicy).
struct HTTPRETRY_API HedgeDelay {
  HedgeDelay() = default;

  Duration after = kForever;
  std::optional<HedgeRefused> refused;  // set where none will go out then
  std::uint32_t samples = 0;            // that `after` comes from; 0: none
};

// What the sends of one scope teach about hedges.
class HTTPRETRY_API HedgeAccount {
 public:
  virtual ~HedgeAccount();
  // Once for each call.
  virtual void begin_call(Time now) = 0;
  // A send has got its response after that time, or was given up.
  virtual void add_sample(Duration to_headers, Time now) = 0;
  [[nodiscard]] virtual HedgeDelay delay(const HedgePolicy& policy, Time now) = 0;
  // Half of the responses take longer; empty where that is not known.
  [[nodiscard]] virtual std::optional<Duration> median(Time now) = 0;
  // The server asks for fewer requests.
  virtual void throttle(Time until) = 0;
  [[nodiscard]] virtual bool throttled(Time now) = 0;
  // From HedgePolicy::budget. False: nothing was taken.
  virtual bool take(const HedgePolicy& policy, Time now) = 0;
  // It was not sent.
  virtual void give_back(const HedgePolicy& policy, Time now) = 0;
};

// A state as a program sees it.
struct HTTPRETRY_API ScopeState {
  ScopeState() = default;

  std::string key;  // with its kind
  std::optional<Circuit> circuit;
  std::uint32_t failed = 0;  // of a circuit's window
  std::uint32_t total = 0;
  // Of a pause, of an open circuit; of a rate: when all tokens are there; of hedges: until then the
  // server wants fewer requests.
  Time until = kNever;
  int in_flight = 0;  // of a limit of concurrent sends
  int waiting = 0;    // sends
  // Of hedges.
  std::int64_t calls = 0;     // of the last ten seconds
  std::int64_t hedges = 0;    // of those; HedgePolicy::budget allows so many for each call
  std::uint32_t samples = 0;  // of the last 30 s, which a quantile comes from
};

class HTTPRETRY_API SharedState {
 public:
  SharedState();
  virtual ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  // Kept by whoever has asked, for as long as it sends.
  [[nodiscard]] virtual std::shared_ptr<SendLimits> limits(LimitKeys keys, Time now) = 0;
  [[nodiscard]] virtual std::shared_ptr<RetryAccount> account(const std::string& key,
                                                              const BudgetPolicy& policy,
                                                              Time now) = 0;
  // Asked instead where a policy file has changed the numbers of budgets: `changes`, the latest
  // last. An account that had the old ones goes on with the new ones, together with what is under
  // way. If it is not overridden, other numbers mean a new account.
  [[nodiscard]] virtual std::shared_ptr<RetryAccount> account_after(
      std::span<const ChangedBudget> changes, const std::string& key, const BudgetPolicy& policy,
      Time now);

  [[nodiscard]] virtual std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) = 0;

  // For programs. All states, or those whose keys begin like that.
  [[nodiscard]] virtual std::vector<ScopeState> states(std::string_view prefix, Time now) const = 0;
  // As new. False where there is no such key.
  virtual bool reset(std::string_view key, Time now) = 0;
  // Of a breaker: open until then, whatever ends until then; and closed.
  virtual bool open_circuit(std::string_view key, Time until, Time now) = 0;
  virtual bool close_circuit(std::string_view key, Time now) = 0;

  // Keys tell credentials apart by a hash, so that they are in none. All who share a state hash
  // with the same number.
  [[nodiscard]] std::uint64_t salt() const { return salt_.load(std::memory_order_relaxed); }

  // Of one that is kept elsewhere: how often that place was lost and found, and the last time.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  [[nodiscard]] SharedStateChange last_change() const;

  // Nothing is paused: a send under no other limits need not ask.
  [[nodiscard]] bool quiet() const { return pauses_.load(std::memory_order_relaxed) == 0; }

  // Those who wait here are told when something may have changed: by a step of another client, or
  // elsewhere. Not called with a lock of the state.
  using Listener = std::function<void(Time now)>;
  void listen(const std::shared_ptr<const Listener>& listener);
  // `except`: who has changed it.
  void tell_changed(Time now, const Listener* except = nullptr) const;

 protected:
  void set_pauses(std::size_t number) {
    pauses_.store(static_cast<int>(number), std::memory_order_relaxed);
  }
  void set_salt(std::uint64_t salt) { salt_.store(salt, std::memory_order_relaxed); }
  // Sets its number.
  void set_last_change(SharedStateChange change);

 private:
  std::atomic<int> pauses_ = 0;
  std::atomic<std::uint64_t> salt_;
  std::atomic<std::uint64_t> changes_ = 0;
  mutable std::mutex mutex_;  // guards the next two
  SharedStateChange last_change_;
  std::vector<std::weak_ptr<const Listener>> listeners_;
};

}  // namespace httpretry
