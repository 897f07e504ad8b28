// FleetState::Account: a budget that the retries of all processes draw from, and the send rate that
// they share. It sends what it takes at once, and what it gives back with the next tick. Between
// replies, the balance is the latest one of the remote state plus the changes by this process.
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
  // Called a few times a second. Sends changes, and refreshes the balance if it is due.
  void on_tick(Time now);
  // Sends all changes that are left.
  void flush(Time now);
  // Returns whether the account can be dropped.
  [[nodiscard]] bool is_unused(Time now) const;

 private:
  // How often a full balance is refreshed, because other processes may have spent the budget. Any
  // other balance is refreshed with each tick.
  static constexpr Duration kSyncFullBudget = std::chrono::seconds(1);

  // Called without the mutex. `step` makes a change to the budget, and records the difference for
  // the remote state.
  template <class Change>
  void step(Time now, const Change& change);
  void on_reply(const RedisState::BudgetView& view, Time now);
  void on_reply(const RedisState::SendsView& view, Time now);

  // Called with the mutex held.
  // Switches between the shared budget and this process's share of it, when the remote state has
  // gone away or come back.
  void follow_remote(Time now);
  // A concurrent budget is not shared: the counts of a process that is killed would remain.
  [[nodiscard]] bool is_budget_shared() const;
  void sync_budget(Time now);
  void sync_sends(Time now);

  FleetState& state_;
  const std::string key_;
  const BudgetPolicy policy_;
  mutable std::mutex mutex_;  // guards all members below
  // The budget of all processes or this one's share, and a send rate that adapts to the server's
  // responses to this process alone.
  SharedBudget own_;
  AdaptiveSends adaptive_;  // the send rate that adapts to the responses to all processes
  bool shared_ = true;
  Query query_;
  RedisState::BudgetChange change_;  // not sent yet
  bool used_since_sync_ = false;
  Time synced_at_{};
  Time last_used_;
};

}  // namespace httpretry::fleet
