// The inside of a gate: its scopes, and what it shares of them with other processes.
#pragma once

#include "gate.hpp"
#include "shared_scope.hpp"

#include <functional>

namespace httpretry::guard {

// The states of one scope. Those of several kinds are together where the kinds have one scope.
struct Gate::Scope {
  std::string key;
  Pause pause;
  Rate rate;
  Slots slots;
  std::unique_ptr<Breaker> breaker;
  std::unique_ptr<SharedScope> shared;
  std::vector<Lane*> lanes;  // that use it
  int waiting = 0;
  int under_way = 0;
  bool paused = false;  // it is in the list of pauses

  [[nodiscard]] bool idle(Time now) const {
    return !paused && under_way == 0 && waiting == 0 && rate.idle(now) &&
           (!breaker || breaker->state() == Circuit::Closed);
  }
};

// Sends with the same limits. Only the first in its queue may be next.
struct Gate::Lane {
  std::shared_ptr<const GuardPolicy> policy;
  std::array<Scope*, 2> pauses{};
  Scope* rate = nullptr;
  Scope* slots = nullptr;
  Scope* breaker = nullptr;
  std::vector<Scope*> scopes;  // each once
  std::map<Turn::Rank, Turn*> queue;
  int under_way = 0;
  int turns = 0;

  [[nodiscard]] Turn& head() const;
  [[nodiscard]] bool asks_breaker(bool is_retry) const {
    return breaker != nullptr &&
           (is_retry || policy->breaker->applies_to == BreakerPolicy::AppliesTo::All);
  }
};

// Asks the shared state for what the scopes need, and takes in its replies. Its functions are
// called with the gate's mutex, except where it says otherwise.
class Gate::Sharing final : public SharedState::Listener,
                            public std::enable_shared_from_this<Sharing> {
 public:
  // The gate owns the state, so that its end is not one of the state's own threads'.
  Sharing(Gate& gate, SharedState& state) : state_(&state), gate_(&gate) {}
  // Without the mutex: nothing comes from there on.
  void close();

  [[nodiscard]] SharedState& state() const { return *state_; }
  // What the sends of a lane need, and has not been asked for.
  void ask(const Lane& lane, Time now);
  void vote(Scope& scope, const BreakerPolicy& policy, const Ticket& ticket, const Ended& ended,
            double chance);
  void pause(const Scope& scope, Duration duration);
  // A slot is free: others may wait for it.
  void slot_freed(Scope& scope, const ConcurrencyPolicy& policy);

 private:
  // Without the mutex.
  void on_news(const SharedState::News& news, Time now) override;
  // Has `take_in` called with the scope of that key, if it is still there.
  template <class Reply>
  std::function<void(const Reply&, Time)> when_replied(
      const Scope& scope, void (Sharing::*take_in)(Scope&, const Reply&, Time));

  void ask_for_slots(Scope& scope, const ConcurrencyPolicy& policy, int wanted, Time now);
  void tell_votes(Scope& scope, const BreakerPolicy& policy, bool wants_probe, double chance);
  void got_tokens(Scope& scope, const SharedState::Tokens& tokens, Time now);
  void got_slots(Scope& scope, const SharedState::Slots& slots, Time now);
  void got_circuit(Scope& scope, const SharedState::CircuitView& view, Time now);
  static void follow(Scope& scope, Time now);
  void changed(Scope& scope, Time now);
  void take_in_news(const SharedState::News& news, Time now);
  // Gives back what nobody needs, and says that what is held is still in use.
  void look_after(Scope& scope, Time now);

  SharedState* state_;  // while the gate lives
  std::mutex mutex_;    // guards the gate's life; taken before its own
  Gate* gate_;
};

}  // namespace httpretry::guard
