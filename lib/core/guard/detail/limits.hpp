// Limits: asks the pauses, the breaker, the rate and the slots of a send, in this order, and takes
// what it needs of them. LocalState uses it for the states of one process; FleetState
// (lib/extras/fleet) overrides what processes decide together.
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

// "https://api.example.com /policies/careful": the key without its kind.
inline std::string_view without_kind(std::string_view key) { return key.substr(key.find(' ') + 1); }

// What a breaker is like. Has neither a key nor who waits.
[[nodiscard]] HTTPRETRY_API ScopeState circuit_of(const Breaker& breaker, Time now);

// A machine, and how many sends wait for it.
template <typename Machine>
struct Scope {
  Machine machine;
  int waiting = 0;
  int under_way = 0;  // only of pauses
  [[nodiscard]] bool idle(Time now) const { return machine.idle(now); }
};

// What keeps a send from going out, or has refused it.
struct Hold {
  QueuedBy by = QueuedBy::Nothing;
  Time until = kNever;  // it may change by itself then
  std::string why{};    // of a circuit
};

// The part of a SharedState that all its Limits use.
class HTTPRETRY_API LimitState : public SharedState {
 protected:
  friend class Limits;
  using Pauses = std::shared_ptr<Scope<Pause>>;
  // A pause that is not over, or whose ramp is not.
  struct Paused {
    std::string key;  // without its kind; empty if observers are not notified of its end
    Pauses scope;
  };

  // With the mutex held.
  void begin_pause(const Pauses& scope, std::string_view key, Time until);
  // Ends each pause that is over and that no send waits for or is in flight in. Only its ramp is
  // left until then, for the sends that come soon after it.
  void end_pauses(Time now, StateChanges& changes);
  // Without it. Returns false if `how` does.
  bool change(Time now, const std::function<bool()>& how);

  mutable std::mutex mutex_;  // guards all states
  int waiting_ = 0;           // sends, of all Limits
  std::vector<Paused> paused_;
};

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
  void wait(int more) override;
  [[nodiscard]] Waiting waiting() const override;
  void pause(std::size_t which, Time until, Time now) override;
  [[nodiscard]] GuardFacts facts(Time now, WallTime wall_now) const override;

 protected:
  friend class LocalState;
  // Behind the pauses of LimitKeys, the ramp of a breaker that calls wait for: they do not go out
  // all at once when it closes.
  static constexpr std::size_t kRamp = 2;

  // All of these are called with the mutex held.
  [[nodiscard]] bool asks_breaker(const SendAsk& ask) const;
  // The numbers by which this process alone decides.
  [[nodiscard]] virtual const GuardPolicy& own_policy() const { return *keys_.policy; }
  [[nodiscard]] virtual Hold held_by_circuit(Time now) const;
  [[nodiscard]] virtual Hold held_by_rate(Time now) const;
  [[nodiscard]] virtual Hold held_by_slots(const SendAsk& ask) const;
  [[nodiscard]] virtual std::string why_open() const { return breaker_->machine.why_open(); }
  [[nodiscard]] virtual ScopeState circuit_now(Time now) const {
    return circuit_of(breaker_->machine, now);
  }
  // Returns false if the breaker refuses the send.
  virtual bool take_ticket(const SendAsk& ask, SendGrant& grant, StateChanges& changes);
  virtual void give_back_ticket(const SendGrant& grant);
  virtual void vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
                    StateChanges& changes);
  virtual void take_token(Time now);
  virtual void tell(Circuit from, Time now, StateChanges& changes);
  // For what other processes have changed.
  virtual void tell_news(Time /*now*/, StateChanges& /*changes*/) {}
  // A send has asked, or a slot is free again.
  virtual void on_asked(const SendAsk& /*ask*/, QueuedBy /*held*/) {}
  virtual void on_freed(Time /*now*/) {}

  const std::shared_ptr<LimitState> state_;
  const LimitKeys keys_;
  // Each is nullptr if the policy has none.
  std::array<std::shared_ptr<Scope<Pause>>, 3> pauses_;
  std::shared_ptr<Scope<Rate>> rate_;
  std::shared_ptr<Scope<Slots>> slots_;
  std::shared_ptr<Scope<Breaker>> breaker_;

 private:
  [[nodiscard]] const PausePolicy& pause_policy(std::size_t which) const;
  [[nodiscard]] Hold held_by_pause(Time now) const;
  [[nodiscard]] SendGrant held(const SendAsk& ask) const;
  void learn(const SendEnd& end, Time now, StateChanges& changes);
};

}  // namespace httpretry::guard
