// LocalState: the states of a process, in memory. The machines of this room under one lock.
#pragma once

#include "hedge_state.hpp"
#include "limits.hpp"
#include "scopes.hpp"

#include "lib/flow/shared_budget.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace httpretry::guard {

class LocalState final : public LimitState, public std::enable_shared_from_this<LocalState> {
 public:
  std::shared_ptr<SendLimits> limits(LimitKeys keys, Time now) override;
  std::shared_ptr<RetryAccount> account(const std::string& key, const BudgetPolicy& policy,
                                        Time now) override;
  std::shared_ptr<RetryAccount> account_after(std::span<const ChangedBudget> changes,
                                              const std::string& key, const BudgetPolicy& policy,
                                              Time now) override;
  std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) override;
  [[nodiscard]] std::vector<ScopeState> states(std::string_view prefix, Time now) const override;
  bool reset(std::string_view key, Time now) override;
  bool open_circuit(std::string_view key, Time until, Time now) override;
  bool close_circuit(std::string_view key, Time now) override;

  // Of each kind. From there on those that nobody uses are dropped, first those that are as new.
  static constexpr std::size_t kMaxScopes = 100'000;
  static constexpr std::size_t kMaxHedges = 4096;  // 2.5 KiB each

 private:
  // Guarded by the mutex:
  Scopes<Scope<Pause>> pauses_{kMaxScopes};
  Scopes<Scope<Rate>> rates_{kMaxScopes};
  Scopes<Scope<Slots>> slots_{kMaxScopes};
  Scopes<Scope<Breaker>> breakers_{kMaxScopes};
  Scopes<HedgeState> hedges_{kMaxHedges};
  Budgets budgets_;  // has locks of its own
};

}  // namespace httpretry::guard
