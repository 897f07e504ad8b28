// FleetState::Limits: the limits of the sends under one policy. It overrides the steps of
// guard::Limits that processes decide together, and leaves them to guard::Limits while the remote
// state is away.
#pragma once

#include "fleet_state.hpp"

namespace httpretry::fleet {

class FleetState::Limits final : public guard::Limits {
 public:
  // Called with the state's mutex held.
  Limits(const std::shared_ptr<FleetState>& state, LimitKeys keys, Time now);
  void pause(std::size_t which, Time until, Time now) override;

 private:
  using Own = guard::Limits;  // decides for this process alone

  // Returns the scope of a key, or nullptr if the key is empty.
  [[nodiscard]] std::shared_ptr<Scope> use(const std::string& key, Time now);
  // The overrides below are called with the mutex held.
  [[nodiscard]] const GuardPolicy& own_policy() const override;
  [[nodiscard]] guard::Hold held_by_circuit(Time now) const override;
  [[nodiscard]] guard::Hold held_by_rate(const SendAsk& ask) const override;
  [[nodiscard]] guard::Hold held_by_slots(const SendAsk& ask) const override;
  [[nodiscard]] std::string why_open() const override { return breaker_scope_->circuit->why; }
  [[nodiscard]] ScopeState circuit_now(Time now) const override;
  bool ask_breaker(const SendAsk& ask, SendGrant& grant, StateChanges& changes) override;
  void release_breaker(const SendGrant& grant) override;
  void vote(const SendGrant& grant, const SendEnd& end, Time now, double random,
            StateChanges& changes) override;
  void take_tokens(const SendAsk& ask) override;
  [[nodiscard]] Time token_at(const SendAsk& ask) const override;
  void report_circuit_change(Circuit from, Time now, StateChanges& changes) override;
  void report_remote_changes(Time now, StateChanges& changes) override;
  void on_asked(const SendAsk& ask, QueuedBy held_by) override;
  void on_slot_freed(Time now) override;
  [[nodiscard]] const RatePolicy& rate_policy() const { return *keys_.policy->rate; }
  void query_circuit(Time now);
  void query_slots(Time now);
  // Returns whether the remote state decides now, and not this process with its share.
  [[nodiscard]] bool is_rate_shared(Time now) const;

  FleetState& fleet_;
  std::shared_ptr<Scope> rate_scope_;
  std::shared_ptr<Scope> slots_scope_;
  std::shared_ptr<Scope> breaker_scope_;
  mutable GuardPolicy share_;
  mutable int workers_ = 0;  // the number of processes that `share_` was calculated for
};

}  // namespace httpretry::fleet
