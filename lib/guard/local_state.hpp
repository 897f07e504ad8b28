// LocalState: the states of a process, in memory. The machines of this room under one lock.
#pragma once

#include "breaker.hpp"
#include "hedge_scopes.hpp"
#include "pause.hpp"
#include "rate.hpp"
#include "slots.hpp"

#include "lib/flow/shared_budget.hpp"

#include <httpretry/flow/shared_state.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace httpretry::guard {

class LocalState final : public SharedState, public std::enable_shared_from_this<LocalState> {
 public:
  std::shared_ptr<SendLimits> limits(LimitKeys keys, Time now) override;
  std::shared_ptr<RetryAccount> account(const std::string& key, const BudgetPolicy& policy,
                                        Time now) override;
  std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) override;
  [[nodiscard]] std::vector<ScopeState> states(std::string_view prefix, Time now) const override;
  bool reset(std::string_view key, Time now) override;
  bool open_circuit(std::string_view key, Time until, Time now) override;
  bool close_circuit(std::string_view key, Time now) override;

  [[nodiscard]] std::size_t scopes() const;
  // From there on those that nobody uses are dropped, first those that are as new.
  static constexpr std::size_t kMaxScopes = 100'000;

 private:
  class Limits;
  struct CircuitState {
    Breaker breaker;
    std::shared_ptr<const GuardPolicy> policy;  // the last that used it
    std::string why;                            // it is open
  };
  // One key. What it is for stands in the key.
  struct Scope {
    const std::string* key = nullptr;
    Pause pause;  // of a breaker: the ramp after it has closed
    Rate rate;
    Slots slots;
    std::unique_ptr<CircuitState> circuit;
    int waiting = 0;
    int under_way = 0;
    bool paused = false;  // it is in the list of pauses

    [[nodiscard]] bool idle(Time now) const;
  };
  using Scopes = std::unordered_map<std::string, std::shared_ptr<Scope>>;

  // With the mutex held.
  std::shared_ptr<Scope> scope_of(const std::string& key, Time now);
  void begin_pause(Scope& scope, Time until);
  // Where nothing waits any more, a pause that is over leaves nothing behind.
  void end_pauses(Time now, StateChanges& changes);
  void make_room(Time now);
  // Without it. False where there is no such key, or `how` says so.
  bool change(std::string_view key, Time now, const std::function<bool(Scope&)>& how);

  mutable std::mutex mutex_;  // guards the rest
  Scopes scopes_;
  std::size_t room_at_ = kMaxScopes;  // so many, and those that nobody uses are dropped
  std::vector<Scope*> paused_;
  // These have locks of their own:
  Budgets budgets_;
  HedgeScopes hedges_;
};

}  // namespace httpretry::guard
