// FleetState: the SharedState of a process that shares its limits with other processes. It decides
// by the latest replies of the remote state or, while that is away, alone with its share.
//
// The clients' threads hold the mutex for one step. The link's thread holds it while it applies a
// reply, and notifies waiting sends afterwards.
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
  // Gives back tokens and slots, and sends the votes and counts that are left.
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
    guard::Scope<guard::Breaker> own;  // decides if kind is Share, or the remote state is away
    std::string why;                   // why it is open
    // The state before a remote change, until the next send reports the change to observers.
    std::optional<Circuit> changed_from;

    void close() { own.machine.close(), votes = {}; }
  };
  // The state of one key. The key's first word says which members are used. `rate` decides while
  // the remote state is away, otherwise `tokens`; the same with `slots` and `held`.
  struct Scope {
    std::string key;
    std::shared_ptr<const GuardPolicy> policy;  // the latest that used this scope
    guard::Scope<guard::Pause> pause;           // for a breaker, the ramp after it has closed
    guard::RateScope rate;
    TokensAhead tokens;
    ReservedTokens reserved;  // instead of `tokens`, if reserves_per_send(policy->rate)
    guard::Scope<guard::Slots> slots;
    SlotsHeld held;
    int most_used = 0;  // slots in use, the most since the last tick
    std::unique_ptr<CircuitState> circuit;
    Time last_used{};
  };
  using ScopePtr = std::shared_ptr<Scope>;
  // A state that is not used for this time is dropped here. The remote state keeps its own copy.
  static constexpr Duration kDropUnusedAfter = std::chrono::seconds(10);
  // If there are more states than this, the states that only other processes use are not kept.
  static constexpr std::size_t kMostScopesOfOthers = 10'000;

  static Pauses pause_of(const ScopePtr& scope) { return {scope, &scope->pause}; }
  // Returns a reply handler that calls `apply` with the mutex held, and then wakes waiting sends.
  template <class Apply>
  auto reply_handler(Apply apply);

  // Except for apply_snapshot, these are called with the mutex held.
  ScopePtr scope_of(const std::string& key, Time now);
  // Returns whether the votes of all processes decide now.
  [[nodiscard]] bool is_circuit_shared(const Scope& scope, Time now) const;
  [[nodiscard]] ScopeState circuit_now(const Scope& scope, Time now) const;

  void request_tokens(const ScopePtr& scope, int waiting, Time now);
  void give_back_tokens(const Scope& scope, std::int64_t unused);
  // Reserve what a send lacks, and give back what no send that waits can use. The latter also finds
  // out whether the other tokens may be used earlier by now.
  void reserve_tokens(const ScopePtr& scope, const RatePolicy& policy, std::int64_t cost, Time now);
  void give_back_reserved(const ScopePtr& scope, const guard::SendsAhead& waiting, Time now);
  void query_reserved(const ScopePtr& scope, const RatePolicy& policy,
                      const RedisState::Amounts& wanted, bool gives_back, Time now);
  void request_slots(const ScopePtr& scope, int wanted, Time now);
  enum class Probe : std::uint8_t { Wanted, NotWanted };
  void send_votes(const ScopePtr& scope, Probe probe, Time now);
  void on_circuit_changed(const ScopePtr& scope, Circuit state_before, Time now);

  void apply_snapshot(const RedisState::Snapshot& snapshot, Time now);
  void apply_pauses(const RedisState::Snapshot& snapshot, Time now);
  void apply_circuits(const RedisState::Snapshot& snapshot, Time now);
  void renew_tokens_and_slots(const ScopePtr& scope, Time now);
  void drop_unused_scopes(Time now);

  // Called without the mutex.
  void on_snapshot(const RedisState::Snapshot& snapshot, Time now);
  bool change_scope(std::string_view key, Time now, const std::function<bool(Scope&)>& how);

  std::unordered_map<std::string, ScopePtr> scopes_;
  std::uint64_t last_remote_change_ = 0;
  std::mutex accounts_mutex_;  // guards accounts_
  std::once_flag concurrent_logged_;
  std::unordered_multimap<std::string, std::shared_ptr<Account>> accounts_;
  // Keeps what is not shared: hedges, and the budgets of policies that single requests carry.
  const std::shared_ptr<SharedState> own_;
  RedisState remote_;  // declared last, because its thread uses the other members
};

}  // namespace httpretry::fleet
