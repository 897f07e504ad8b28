#include "hedge_state.hpp"
#include "lib/core/guard/detail/limits.hpp"
#include "scopes.hpp"

#include "lib/core/guard/detail/shared_budget.hpp"

#include <httpretry/guard/local_state.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace httpretry {
namespace guard {

// How many states of each kind are kept. Beyond that, Scopes drops unused ones.
constexpr std::size_t kMaxScopes = 100'000;
constexpr std::size_t kMaxHedges = 4096;  // 2.5 KiB each

// LocalState: the states of one process, in memory. One lock guards all state machines.
class LocalState final : public LimitState, public std::enable_shared_from_this<LocalState> {
 public:
  // Returns the limits of all sends with these keys. Makes the states that do not exist yet.
  std::shared_ptr<SendLimits> limits(LimitKeys keys_of_sends, Time now) override {
    // Returns the state of a key, or nullptr if the key is empty.
    const auto at = [now](auto& states, const std::string& key) {
      return key.empty() ? nullptr : states.at(key, now);
    };
    const std::lock_guard lock(mutex_);
    auto limits = std::make_shared<Limits>(shared_from_this(), std::move(keys_of_sends));
    const auto& keys = limits->keys_;
    for (std::size_t which = 0; which < keys.pauses.size(); ++which) {
      limits->pauses_[which] = at(pauses_, keys.pauses[which]);
    }
    limits->rate_ = at(rates_, keys.rate);
    limits->slots_ = at(slots_, keys.slots);
    limits->breaker_ = at(breakers_, keys.breaker);
    // Sends that wait for an open circuit go out slowly when it closes. This slow start, the ramp,
    // is like the one after a pause, so it has a place among the pauses.
    if (limits->breaker_ && keys.policy->breaker->when_open == BreakerPolicy::WhenOpen::Wait) {
      const auto key = "ramp " + std::string(without_kind(keys.breaker));
      limits->pauses_[Limits::kRamp] = at(pauses_, key);
    }
    return limits;
  }

  std::shared_ptr<RetryAccount> account(const std::string& key, const BudgetPolicy& policy,
                                        Time now) override {
    return budgets_.at(key, policy, now);
  }

  std::shared_ptr<RetryAccount> account_after(std::span<const ChangedBudget> changes,
                                              const std::string& key, const BudgetPolicy& policy,
                                              Time now) override {
    return budgets_.at(key, policy, now, changes);
  }

  std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) override {
    const std::lock_guard lock(mutex_);
    return hedges_.at(key, now);
  }

  // Returns the states whose keys begin with `prefix`, in the order of their keys.
  [[nodiscard]] std::vector<ScopeState> states(std::string_view prefix, Time now) const override {
    std::vector<ScopeState> states;
    // Adds a state, and returns it so that the caller can set the members for its kind.
    const auto add = [&](const std::string& key, const auto& scope,
                         ScopeState state = {}) -> ScopeState& {
      state.key = key;
      state.waiting = scope.waiting;
      return states.emplace_back(std::move(state));
    };
    const std::lock_guard lock(mutex_);
    hedges_.each(prefix, [&](const std::string& key, HedgeState& hedges) {
      states.push_back(hedges.facts(key, now));
    });
    pauses_.each(prefix, [&](const std::string& key, const Scope<Pause>& scope) {
      auto& state = add(key, scope);
      if (!scope.machine.idle(now)) state.until = scope.machine.until();
    });
    rates_.each(prefix, [&](const std::string& key, const RateScope& scope) {
      add(key, scope).until = scope.machine.full_at();
    });
    slots_.each(prefix, [&](const std::string& key, const Scope<Slots>& scope) {
      add(key, scope).in_flight = scope.machine.used();
    });
    breakers_.each(prefix, [&](const std::string& key, const Scope<Breaker>& scope) {
      add(key, scope, circuit_of(scope.machine, now));
    });
    std::sort(states.begin(), states.end(),
              [](const ScopeState& a, const ScopeState& b) { return a.key < b.key; });
    return states;
  }

  // Returns false if there is no state with this key. A key begins with its kind, so at most one
  // map contains it.
  bool reset(std::string_view key, Time now) override {
    return change(now, [&] {
      return breakers_.change(key, [](auto& scope) { scope.machine.close(); }) ||
             pauses_.change(key, [](auto& scope) { scope.machine.end(); }) ||
             rates_.change(key, [](auto& scope) { scope.machine = Rate(); }) ||
             slots_.change(key, [](auto& scope) { scope.machine.reset_limit(); }) ||
             hedges_.change(key, [](HedgeState& hedges) { hedges.reset(); });
    });
  }

  bool open_circuit(std::string_view key, Time until, Time now) override {
    return change(now, [&] {
      return breakers_.change(key, [&](auto& scope) { scope.machine.open_until(until); });
    });
  }

  bool close_circuit(std::string_view key, Time now) override {
    return change(
        now, [&] { return breakers_.change(key, [](auto& scope) { scope.machine.close(); }); });
  }

 private:
  // Guarded by the mutex, except `budgets_`.
  Scopes<Scope<Pause>> pauses_{kMaxScopes};
  Scopes<RateScope> rates_{kMaxScopes};
  Scopes<Scope<Slots>> slots_{kMaxScopes};
  Scopes<Scope<Breaker>> breakers_{kMaxScopes};
  Scopes<HedgeState> hedges_{kMaxHedges};
  Budgets budgets_;  // has its own locks
};

}  // namespace guard

std::shared_ptr<SharedState> local_state() { return std::make_shared<guard::LocalState>(); }

}  // namespace httpretry
