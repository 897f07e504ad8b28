// FleetState: the limits of a process that shares them with others. It decides by what the remote
// state has said last, or by itself with its share where that is away.
#pragma once

#include "shared_scope.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace httpretry::fleet {

class FleetState final : public guard::LimitState, public std::enable_shared_from_this<FleetState> {
 public:
  explicit FleetState(Link::Options options);
  // Tells what was not told yet.
  ~FleetState() override;

  std::shared_ptr<SendLimits> limits(LimitKeys keys, Time now) override;
  std::shared_ptr<RetryAccount> account(const std::string& key, const BudgetPolicy& policy,
                                        Time now) override;
  std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) override;
  [[nodiscard]] std::vector<ScopeState> states(std::string_view prefix, Time now) const override;
  bool reset(std::string_view key, Time now) override;
  bool open_circuit(std::string_view key, Time until, Time now) override;
  bool close_circuit(std::string_view key, Time now) override;

 private:
  class Limits;
  class Account;
  struct CircuitState {
    CircuitVotes votes;
    guard::Scope<guard::Breaker> own;  // while the remote state is away, and of kind Share
    std::string why;                   // it is open
    // What it was before others changed it, until the next send tells that.
    std::optional<Circuit> changed_from;

    void close() { own.machine.close(), votes = {}; }
  };
  // One key. What it is for stands in the key. Of rate and slots the first is used while the remote
  // state is away.
  struct Scope {
    std::string key;
    std::shared_ptr<const GuardPolicy> policy;  // the last that used it
    guard::Scope<guard::Pause> pause;           // of a breaker: the ramp after it has closed
    guard::Scope<guard::Rate> rate;
    TokensAhead tokens;
    guard::Scope<guard::Slots> slots;
    SlotsHeld held;
    int most_used = 0;  // slots, since the last tick
    std::unique_ptr<CircuitState> circuit;
    Time last_used{};
  };
  using ScopePtr = std::shared_ptr<Scope>;
  // A state that nobody has used for so long is left to the remote state.
  static constexpr Duration kForgotten = std::chrono::seconds(10);

  static Pauses pause_of(const ScopePtr& scope) { return {scope, &scope->pause}; }
  // For a question: calls `take_in` with the reply.
  template <class TakeIn>
  auto when_replied(TakeIn take_in);
  // From here on with the mutex.
  ScopePtr scope_of(const std::string& key, Time now);
  // Whether the votes of all processes decide now.
  [[nodiscard]] bool shares_circuit(const Scope& scope, Time now) const;
  [[nodiscard]] ScopeState circuit_now(const Scope& scope, Time now) const;

  void ask_for_tokens(const ScopePtr& scope, int waiting, Time now);
  void give_back_tokens(const Scope& scope, std::int64_t unused);
  void ask_for_slots(const ScopePtr& scope, int wanted, Time now);
  void tell_votes(const ScopePtr& scope, bool wants_probe, Time now);
  void circuit_changed(const ScopePtr& scope, Circuit from, Time now);

  // News.
  void take_in(const RedisState::News& news, Time now);
  void hear_pauses(const RedisState::News& news, Time now);
  void hear_circuits(const RedisState::News& news, Time now);
  void look_after(const ScopePtr& scope, Time now);
  void drop_unused(Time now);
  // Without the mutex.
  void on_news(const RedisState::News& news, Time now);
  bool change_scope(std::string_view key, Time now, const std::function<bool(Scope&)>& how);

  std::unordered_map<std::string, ScopePtr> scopes_;
  std::uint64_t last_remote_change_ = 0;
  std::mutex accounts_mutex_;  // guards the accounts
  std::once_flag told_of_concurrent_;
  std::unordered_multimap<std::string, std::shared_ptr<Account>> accounts_;
  // For what is not shared: hedges, and budgets of policies that other processes do not have.
  const std::shared_ptr<SharedState> own_;
  RedisState remote_;  // the last: its thread uses all the others
};

}  // namespace httpretry::fleet
