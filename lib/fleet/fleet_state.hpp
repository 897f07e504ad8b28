// FleetState: the limits of a process that shares them with others. It decides by what the remote
// state has said last, or by itself with its share where that is away.
#pragma once

#include "remote_state.hpp"
#include "shared_scope.hpp"

#include "lib/guard/breaker.hpp"
#include "lib/guard/pause.hpp"
#include "lib/guard/rate.hpp"
#include "lib/guard/slots.hpp"

#include <httpretry/flow/shared_state.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace httpretry::fleet {

class FleetState final : public SharedState, public std::enable_shared_from_this<FleetState> {
 public:
  explicit FleetState(std::unique_ptr<RemoteState> remote);
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

  [[nodiscard]] RemoteState& remote() const { return *remote_; }
  [[nodiscard]] std::size_t scopes() const;
  [[nodiscard]] std::size_t accounts() const;

 private:
  class Limits;
  class Account;
  class Hearing;
  // Found by the next send, which tells it.
  struct CircuitNews {
    Circuit from = Circuit::Closed;
    bool told = true;
  };
  struct CircuitState {
    CircuitVotes votes;
    guard::Breaker own;  // while the remote state is away, and of kind Share
    std::string why;     // it is open
    CircuitNews news;
  };
  // One key. What it is for stands in the key. Of rate and slots the first is used while the remote
  // state is away.
  struct Scope {
    std::string key;
    std::shared_ptr<const GuardPolicy> policy;  // the last that used it
    guard::Pause pause;                         // of a breaker: the ramp after it has closed
    guard::Rate rate;
    TokensAhead tokens;
    guard::Slots slots;
    SlotsHeld held;
    int most_used = 0;  // slots, since the last tick
    std::unique_ptr<CircuitState> circuit;
    int waiting = 0;
    int under_way = 0;
    bool paused = false;  // it is in the list of pauses
    Time last_used{};
  };
  struct CircuitNow {
    Circuit state = Circuit::Closed;
    std::uint32_t failed = 0;
    std::uint32_t total = 0;
    Time until{};  // while it is open
  };
  // A state that nobody has used for so long is left to the remote state.
  static constexpr Duration kForgotten = std::chrono::seconds(10);

  template <class Reply>
  std::function<void(const Reply&, Time)> when_replied(const std::shared_ptr<Scope>& scope,
                                                       void (FleetState::*got)(Scope&, const Reply&,
                                                                               Time));
  // From here on with the mutex.
  std::shared_ptr<Scope> scope_of(const std::string& key, Time now);
  // Whether the votes of all processes decide now.
  [[nodiscard]] bool shares_circuit(const Scope& scope, Time now) const;
  [[nodiscard]] CircuitNow circuit_now(const Scope& scope, Time now) const;
  void begin_pause(Scope& scope, Time until);
  void end_pauses(Time now, StateChanges& changes);

  void ask_for_tokens(const std::shared_ptr<Scope>& scope, int waiting, Time now);
  void ask_for_slots(const std::shared_ptr<Scope>& scope, int wanted, Time now);
  void tell_votes(const std::shared_ptr<Scope>& scope, bool wants_probe, Time now);
  void got_tokens(Scope& scope, const RemoteState::Tokens& tokens, Time now);
  void got_slots(Scope& scope, const RemoteState::Slots& slots, Time now);
  void got_circuit(Scope& scope, const RemoteState::CircuitView& view, Time now);
  void circuit_changed(Scope& scope, Circuit from, Time now);

  // News.
  void take_in(const RemoteState::News& news, Time now);
  void hear_pauses(const RemoteState::News& news, Time now);
  void hear_circuits(const RemoteState::News& news, Time now);
  void look_after(const std::shared_ptr<Scope>& scope, Time now);
  void drop_unused(Time now);
  // Without the mutex.
  void look_after_accounts(Time now);
  bool change(std::string_view key, Time now, const std::function<bool(Scope&)>& how);

  mutable std::mutex mutex_;  // guards the scopes, and what is in them
  std::unordered_map<std::string, std::shared_ptr<Scope>> scopes_;
  std::vector<Scope*> paused_;
  int waiting_ = 0;                       // sends, each once for each of its scopes
  std::uint64_t last_remote_change_ = 0;  // of the thread of the remote state
  mutable std::mutex accounts_mutex_;     // guards the accounts
  std::once_flag told_of_concurrent_;
  std::unordered_multimap<std::string, std::shared_ptr<Account>> accounts_;
  // For what is not shared: hedges, and budgets of policies that other processes do not have.
  const std::shared_ptr<SharedState> own_;
  const std::shared_ptr<Hearing> hearing_;
  const std::unique_ptr<RemoteState> remote_;  // the last: its thread uses all the others
};

}  // namespace httpretry::fleet
