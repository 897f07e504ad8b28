// A budget that the retries of all processes draw from. What is taken is told at once, what is
// given back a little later; in between the balance is what the remote state has said last, and
// what this process has done since.
#pragma once

#include "fleet_state.hpp"

#include "lib/core/guard/detail/shared_budget.hpp"

namespace httpretry::fleet {

class FleetState::Account final : public RetryAccount,
                                  public std::enable_shared_from_this<FleetState::Account> {
 public:
  Account(FleetState& state, std::string key, const BudgetPolicy& policy, Time now);

  Duration take_send(Time now) override;
  void count_attempt(bool throttled, Time now) override;
  void begin_call(Time now) override;
  RetryPermit end_attempt(BudgetClaim& claim, const Classified& classified, AfterAttempt next,
                          Time now) override;
  void cancel(BudgetClaim& claim, bool paid, Time now) override;
  bool take_hedge(BudgetClaim& claim, Time now) override;
  void give_back_hedge(BudgetClaim& claim, Time now) override;
  void end_hedge(BudgetClaim& claim, Time now) override;
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const override;

  [[nodiscard]] const BudgetPolicy& policy() const { return policy_; }
  // A few times a second: tells and asks what is due.
  void look_after(Time now);
  // Tells what was not told yet, for the last time.
  void tell(Time now);
  [[nodiscard]] bool forgotten(Time now) const;

 private:
  // A full budget is asked about so often, for others may have spent it; any other with each tick.
  static constexpr Duration kAskAgain = std::chrono::seconds(1);
  // Without the mutex.
  template <class Change>
  auto step(Time now, const Change& change);
  void got(const RedisState::BudgetView& view, Time now);
  void got(const RedisState::SendsView& view, Time now);
  // With it.
  // The remote state has gone, or is back.
  void follow_remote(Time now);
  // Each process counts what it has under way itself: what a killed one has counted would stay.
  [[nodiscard]] bool shares_budget() const;
  void ask(Time now);
  void ask_for_turns(Time now);

  FleetState& state_;
  const std::string key_;
  const BudgetPolicy policy_;
  mutable std::mutex mutex_;  // guards what follows
  // The budget of all processes, or this one's share; and the send rate of this process, by what
  // the server says to it alone.
  SharedBudget own_;
  SendTurns turns_;  // by what it says to all
  bool shared_ = true;
  Question question_;
  RedisState::BudgetChange change_;  // that was not told yet
  bool used_ = false;                // since it was asked for
  Time asked_at_{};
  Time last_used_;
};

}  // namespace httpretry::fleet
