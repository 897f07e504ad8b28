// The states that the sends under one policy share, in a LocalState.
#pragma once

#include "local_state.hpp"

namespace httpretry::guard {

class LocalState::Limits final : public SendLimits {
 public:
  // With the state's mutex.
  Limits(std::shared_ptr<LocalState> state, LimitKeys keys, Time now);
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
  // With the mutex.
  [[nodiscard]] SendGrant held(const SendAsk& ask) const;
  bool take_ticket(const SendAsk& ask, SendGrant& grant, StateChanges& changes);
  void vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
            StateChanges& changes);
  void tell(Circuit from, StateChanges& changes) const;

  const std::shared_ptr<LocalState> state_;
  const LimitKeys keys_;
  // Each is nullptr where there is none.
  std::array<std::shared_ptr<Scope<Pause>>, 3> pauses_;
  std::shared_ptr<Scope<Rate>> rate_;
  std::shared_ptr<Scope<Slots>> slots_;
  std::shared_ptr<Scope<Breaker>> breaker_;
};

}  // namespace httpretry::guard
