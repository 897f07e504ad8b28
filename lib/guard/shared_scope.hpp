// What one process knows of a scope whose limits it shares with others. Plain state machines,
// without clock and lock.
#pragma once

#include "breaker.hpp"

#include <httpretry/flow/shared_state.hpp>

#include <deque>

namespace httpretry::guard {

// How long a send waits for a reply before it goes on without.
inline constexpr Duration kAnswerWithin = std::chrono::milliseconds(50);

// The share of one process.
[[nodiscard]] RatePolicy share_of(RatePolicy policy, int workers);
[[nodiscard]] ConcurrencyPolicy share_of(ConcurrencyPolicy policy, int workers);
[[nodiscard]] BreakerPolicy share_of(BreakerPolicy policy, int workers);

// Tokens that were taken ahead: as many as were used in the last 100 ms.
class TokensAhead {
 public:
  // When there is one; some time soon where the shared state must be asked first.
  [[nodiscard]] Time ready_at(Time now) const;
  // There is none, and a reply will tell more.
  [[nodiscard]] bool unknown(Time now) const { return batches_.empty() && now >= ask_again_; }
  void take(Time now);
  // How many to ask for; 0: not now.
  std::int64_t wanted(const RatePolicy& policy, int waiting, Time now);
  void asked() { asked_ = true; }
  void got(const SharedState::Tokens& tokens);
  void lost() { asked_ = false; }
  // Nobody needs them: how many to give back.
  std::int64_t give_back(Time now);
  void clear() { *this = TokensAhead(); }
  [[nodiscard]] std::int64_t count() const;

 private:
  struct Batch {
    std::int64_t count = 0;
    Time first{};
    Duration each{};
  };
  std::deque<Batch> batches_;
  bool asked_ = false;
  Time ask_again_{};
  std::int64_t slot_ = 0;  // of 100 ms, in which were used:
  std::int64_t used_ = 0;
  std::int64_t used_before_ = 0;
  void advance(Time now);
};

// How many sends this process may have under way.
class SlotsHeld {
 public:
  [[nodiscard]] int granted() const { return granted_; }
  [[nodiscard]] bool contended() const { return contended_; }
  // Whether to ask, for `wanted` in all.
  [[nodiscard]] bool asks(int wanted, Time now) const;
  // When it may ask again.
  [[nodiscard]] Time next_ask() const { return ask_again_; }
  void asked(Time now);
  void got(const SharedState::Slots& slots);
  void lost() { asked_ = false; }
  void clear() { *this = SlotsHeld(); }

 private:
  static constexpr Duration kAskAgain = std::chrono::milliseconds(20);
  int granted_ = 0;
  bool contended_ = false;
  bool asked_ = false;
  Time ask_again_{};
};

// A circuit that all processes vote on.
class CircuitVotes {
 public:
  struct Answer {
    bool allowed = false;
    bool asks = false;  // the shared state must say who probes
    Time until{};       // where it is not allowed
  };
  [[nodiscard]] Answer ask(Time now) const;
  // The send goes out.
  Ticket take();
  // It has ended. True: the votes should be told now, for they change the state.
  bool vote(const BreakerPolicy& policy, const Ticket& ticket, const Vote& vote);
  void give_back(const Ticket& ticket);
  // What to tell, where there is something to tell or to ask.
  [[nodiscard]] bool has_votes() const;
  SharedState::Votes tell(const BreakerPolicy& policy, bool wants_probe, double unit_random);
  [[nodiscard]] bool is_asked() const { return asked_; }
  void got(const SharedState::CircuitView& view, Time now);
  void lost();  // there is no reply
  // From the news. True: it has changed.
  bool heard(const SharedState::CircuitView& view);
  void clear() { *this = CircuitVotes(); }
  [[nodiscard]] const SharedState::CircuitView& view() const { return view_; }

 private:
  [[nodiscard]] bool too_many_failed(const BreakerPolicy& policy) const;

  SharedState::CircuitView view_;
  SharedState::Votes votes_;
  Duration server_delay_{};
  Duration open_for_{};
  bool asked_ = false;        // a reply is due
  bool probe_asked_ = false;  // and tells who probes
  bool probe_ = false;        // it is ours, and unused
  Time no_probe_until_{};     // another has it
};

// Those of one scope.
struct SharedScope {
  explicit SharedScope(SharedState& shared) : state(&shared) {}
  // Whether it counts; else the share of this process.
  [[nodiscard]] bool on() const { return state->up(); }

  SharedState* state;
  TokensAhead tokens;
  SlotsHeld slots;
  CircuitVotes circuit;
};

}  // namespace httpretry::guard
