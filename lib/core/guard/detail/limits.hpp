// Limits, and the state that all Limits of a SharedState have in common.
#pragma once

#include "lib/core/guard/breaker.hpp"
#include "lib/core/guard/pause.hpp"
#include "lib/core/guard/rate.hpp"
#include "lib/core/guard/slots.hpp"

#include <httpretry/guard/shared_state.hpp>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::guard {

// Returns a key without its kind: "https://api.example.com /policies/careful".
inline std::string_view without_kind(std::string_view key) { return key.substr(key.find(' ') + 1); }

// A state machine, and the number of sends that wait for it.
template <typename Machine>
struct Scope {
  Machine machine;
  int waiting = 0;
  int in_flight = 0;  // sends that have gone out; counted only for pauses
  [[nodiscard]] bool idle(Time now) const { return machine.idle(now); }
};

// The state of the rates of a policy, and what the sends that wait for it cost.
struct RateScope : Scope<Rate> {
  std::int64_t waiting_cost = 0;
};

// The limit that holds a send back or has refused it.
struct Hold {
  QueuedBy by = QueuedBy::Nothing;
  Time until = kNever;  // when the limit may let it out; kNever: only the end of another send can
  std::string why{};    // for a circuit: what opened it
  // The circuit is closed, but its breaker, of kind Share, refuses a part of the sends at random.
  bool at_random = false;
};

class LocalState;

namespace detail {

// Returns the state of a breaker, without `key` and `waiting`.
[[nodiscard]] HTTPRETRY_API ScopeState circuit_of(const Breaker& breaker, Time now);

// The part of a SharedState that all its Limits use: the mutex, and the pauses in effect.
class HTTPRETRY_API LimitState : public SharedState {
 protected:
  friend class Limits;
  using Pauses = std::shared_ptr<Scope<Pause>>;
  // A pause in effect, or one whose ramp has not ended.
  struct Paused {
    std::string key;  // without its kind; empty if observers are not notified of the end
    Pauses scope;
  };

  // Requires the mutex.
  void begin_pause(const Pauses& scope, std::string_view key, Time until);
  // Ends each ramp whose pause is over, once no send of its scope waits or is in flight. Until then
  // the ramp limits the sends that follow the pause. Requires the mutex.
  void end_pauses(Time now, StateChanges& changes);
  // Calls `how` with the mutex locked, and then notifies the listeners. Returns false and notifies
  // no listener if `how` returns false.
  bool change(Time now, const std::function<bool()>& how);

  mutable std::mutex mutex_;  // guards all states
  int waiting_ = 0;           // sends that wait, in all Limits
  std::vector<Paused> paused_;
};

// Limits applies one set of limits to all sends with the same keys. It checks a send against its
// pauses, breaker, rate and slots, in this order, and takes what the send needs. SendLimits
// describes the functions; the gate of guards() calls them, on any thread. Each function locks the
// mutex of the LimitState and so is one atomic step.
//
// LocalState uses this class for limits within one process. FleetState (lib/extras/fleet) overrides
// the decisions that processes make together.
class HTTPRETRY_API Limits : public SendLimits {
 public:
  Limits(std::shared_ptr<LimitState> state, LimitKeys keys)
      : state_(std::move(state)), keys_(std::move(keys)) {}

  SendGrant enter(const SendAsk& ask, StateChanges& changes) override;
  [[nodiscard]] SendGrant look(const SendAsk& ask) const override;
  void vote_early(SendGrant& grant, const SendEnd& end, Time now, double random,
                  StateChanges& changes) override;
  void leave(const SendGrant& grant, const SendEnd* end, Time now, double random,
             StateChanges& changes) override;
  // Adds `change`, 1 or -1, to the number of sends that wait for these limits, and adds what the
  // send costs, or subtracts it.
  void wait(int change, std::int64_t change_of_cost) override;
  [[nodiscard]] Waiting waiting(const SendAsk& ask) const override;
  void pause(std::size_t which, Time until, Time now) override;
  [[nodiscard]] GuardFacts facts(Time now, WallTime wall_now) const override;

 protected:
  friend LocalState;
  // The index in `pauses_` of the pause that begins, and ends at once, when a breaker with
  // WhenOpen::Wait closes. Only its ramp has an effect: it keeps the sends that have waited for the
  // breaker from going out all at once. The indexes before it are those of LimitKeys::pauses.
  static constexpr std::size_t kRamp = 2;

  // All functions from here on require the mutex of the state, `LimitState::mutex_`.
  [[nodiscard]] bool uses_breaker(const SendAsk& ask) const;
  // Returns the numbers that this process applies when it decides by itself: those of the policy.
  // In a fleet, they are the process's share of them.
  [[nodiscard]] virtual const GuardPolicy& own_policy() const { return *keys_.policy; }
  // Return the limit if it holds the send back, and otherwise QueuedBy::Nothing.
  [[nodiscard]] virtual Hold held_by_circuit(Time now) const;
  [[nodiscard]] virtual Hold held_by_rate(const SendAsk& ask) const;
  [[nodiscard]] virtual Hold held_by_slots(const SendAsk& ask) const;
  [[nodiscard]] virtual std::string why_open() const { return breaker_->machine.why_open(); }
  [[nodiscard]] virtual ScopeState circuit_now(Time now) const {
    return circuit_of(breaker_->machine, now);
  }
  // Returns false if the breaker refuses the send.
  virtual bool ask_breaker(const SendAsk& ask, SendGrant& grant, StateChanges& changes);
  virtual void release_breaker(const SendGrant& grant);
  virtual void vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
                    StateChanges& changes);
  virtual void take_tokens(const SendAsk& ask);
  // Returns when the rate may allow a send that waits behind all others.
  [[nodiscard]] virtual Time token_at(const SendAsk& ask) const;
  virtual void report_circuit_change(Circuit from, Time now, StateChanges& changes);
  // Adds the changes that other processes have made to `changes`. FleetState overrides it.
  virtual void report_remote_changes(Time /*now*/, StateChanges& /*changes*/) {}
  // Called after each `enter`, with the limit that held the send back.
  virtual void on_asked(const SendAsk& /*ask*/, QueuedBy /*held*/) {}
  // Called after a slot was given back.
  virtual void on_slot_freed(Time /*now*/) {}

  const std::shared_ptr<LimitState> state_;
  const LimitKeys keys_;
  // Each is nullptr if the policy has no such limit.
  std::array<std::shared_ptr<Scope<Pause>>, 3> pauses_;
  std::shared_ptr<RateScope> rate_;
  std::shared_ptr<Scope<Slots>> slots_;
  std::shared_ptr<Scope<Breaker>> breaker_;

 private:
  [[nodiscard]] const PausePolicy& pause_policy(std::size_t which) const;
  [[nodiscard]] Hold held_by_pause(Time now) const;
  [[nodiscard]] SendGrant find_hold(const SendAsk& ask) const;
  void adjust_limit(const SendEnd& end, Time now, StateChanges& changes);
};

}  // namespace detail
using detail::circuit_of;
using detail::Limits;
using detail::LimitState;

}  // namespace httpretry::guard
