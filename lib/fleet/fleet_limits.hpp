// The states that the sends under one policy share, in a FleetState.
#pragma once

#include "fleet_state.hpp"

#include <array>

namespace httpretry::fleet {

class FleetState::Limits final : public SendLimits {
 public:
  // With the state's mutex.
  Limits(std::shared_ptr<FleetState> state, LimitKeys keys, Time now);
  ~Limits() override = default;
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

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

 private:
  struct Hold {
    QueuedBy by = QueuedBy::Nothing;
    Time until = kNever;
  };

  void use(std::shared_ptr<Scope>& member, const std::string& key, Time now);
  // With the mutex.
  [[nodiscard]] SendGrant held(const SendAsk& ask) const;
  [[nodiscard]] Hold held_by_pause(Time now) const;
  [[nodiscard]] Hold held_by_circuit(Time now) const;
  [[nodiscard]] Hold held_by_rate(Time now) const;
  [[nodiscard]] Hold held_by_slots(const SendAsk& ask) const;
  // Whether the remote state decides now, or this process with its share.
  [[nodiscard]] bool shares_rate(Time now) const;
  [[nodiscard]] bool shares_slots(Time now) const;
  [[nodiscard]] int slot_limit(Time now) const;
  [[nodiscard]] BreakerPolicy own_breaker() const;
  // What this send waits for, or the next ones will.
  void ask_remote(const SendAsk& ask, QueuedBy held);

  bool take_ticket(const SendAsk& ask, SendGrant& grant, StateChanges& changes);
  void take_token(Time now);
  void vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
            StateChanges& changes);
  void give_back_ticket(const SendGrant& grant);
  void tell_own(Circuit from, Time now, StateChanges& changes) const;
  void tell_news(Time now, StateChanges& changes) const;
  void tell(Circuit from, Time now, StateChanges& changes) const;

  const std::shared_ptr<FleetState> state_;
  const LimitKeys keys_;
  std::array<std::shared_ptr<Scope>, 3> pauses_;
  std::shared_ptr<Scope> rate_;
  std::shared_ptr<Scope> slots_;
  std::shared_ptr<Scope> breaker_;
  std::vector<Scope*> scopes_;  // each once
};

}  // namespace httpretry::fleet
