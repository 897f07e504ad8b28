// LocalState: the states of a process, in memory. The machines of this room under one lock.
#pragma once

#include "breaker.hpp"
#include "hedge_scopes.hpp"
#include "pause.hpp"
#include "rate.hpp"
#include "scopes.hpp"
#include "slots.hpp"

#include "lib/flow/shared_budget.hpp"

#include <httpretry/flow/shared_state.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace httpretry::guard {

class LocalState final : public SharedState, public std::enable_shared_from_this<LocalState> {
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

 private:
  class Limits;
  // A machine, and how many sends wait for it.
  template <typename Machine>
  struct Scope {
    Machine machine;
    int waiting = 0;
    int under_way = 0;  // only of pauses
    [[nodiscard]] bool idle(Time now) const { return machine.idle(now); }
  };
  // A pause that is not over, or whose ramp is not.
  struct Paused {
    std::string key;  // without its kind; empty where no observer is told of its end
    std::shared_ptr<Scope<Pause>> scope;
  };

  // With the mutex held.
  void begin_pause(const std::shared_ptr<Scope<Pause>>& scope, std::string_view key, Time until);
  // Where nothing waits any more, a pause that is over leaves nothing behind but its ramp, for the
  // sends that come soon after it.
  void end_pauses(Time now, StateChanges& changes);
  // Without it. False where `how` says so.
  bool change(Time now, const std::function<bool()>& how);

  mutable std::mutex mutex_;  // guards the next
  Scopes<Scope<Pause>> pauses_{kMaxScopes};
  Scopes<Scope<Rate>> rates_{kMaxScopes};
  Scopes<Scope<Slots>> slots_{kMaxScopes};
  Scopes<Scope<Breaker>> breakers_{kMaxScopes};
  std::vector<Paused> paused_;
  // These have locks of their own:
  Budgets budgets_;
  HedgeScopes hedges_;
};

}  // namespace httpretry::guard
