// What one process knows of a scope whose limits it shares with others. Plain state machines,
// without clock and lock.
#pragma once

#include "redis_state.hpp"

#include "lib/core/guard/detail/limits.hpp"

#include <deque>

namespace httpretry::fleet {

// A send that waits for a reply looks again so often. The reply wakes it, too.
inline constexpr Duration kLookAgain = std::chrono::milliseconds(5);

[[nodiscard]] ConcurrencyPolicy with_max(ConcurrencyPolicy policy, int max);
// The share of one process.
[[nodiscard]] GuardPolicy share_of(GuardPolicy policy, int workers);
[[nodiscard]] BudgetPolicy share_of(BudgetPolicy policy, int workers);

// A question whose reply a send may wait for.
class Question {
 public:
  [[nodiscard]] bool is_asked() const { return asked_; }
  // The reply was an error a short time ago.
  [[nodiscard]] bool failed_lately(Time now) const { return now < failed_until_; }
  // Whether the remote state decides: there was no error, and a reply has not taken too long.
  [[nodiscard]] bool is_for(const RedisState& remote, Time now) const {
    return remote.up() && !failed_lately(now) && !(asked_ && now - asked_at_ >= remote.patience());
  }
  [[nodiscard]] Time asked_at() const { return asked_at_; }
  [[nodiscard]] bool may_ask(Time now) const { return !asked_ && !failed_lately(now); }
  void ask(Time now) { asked_ = true, asked_at_ = now; }
  // Returns false if there is no reply.
  bool replied(bool away, Time now) {
    asked_ = false;
    if (away) failed_until_ = now + kAfterError;
    return !away;
  }
  // It was not asked after all.
  void forget() { asked_ = false; }

 private:
  static constexpr Duration kAfterError = std::chrono::seconds(1);
  bool asked_ = false;
  Time asked_at_{};
  Time failed_until_{};
};

// Tokens that were taken ahead: as many as were used in the last 100 ms.
class TokensAhead {
 public:
  Question question;
  [[nodiscard]] bool has_some() const { return !batches_.empty(); }
  // When the first may be used; where there is none, when more can be asked for.
  [[nodiscard]] Time ready_at() const;
  void take(Time now);
  // How many to ask for; 0: not now.
  std::int64_t wanted(const RatePolicy& policy, int waiting, Time now);
  void got(const RedisState::Tokens& tokens, Time now);
  // Where the last reply is old: others may have given some back.
  void doubt(Time now);
  // Those that nobody has needed for a time: how many to give back.
  std::int64_t unused(Time now);
  std::int64_t give_back();
  [[nodiscard]] std::int64_t count() const;

 private:
  struct Batch {
    std::int64_t count = 0;
    Time first{};
    Duration each{};
  };
  std::deque<Batch> batches_;
  Time ask_again_{};
  std::int64_t slot_ = 0;  // of 100 ms, in which were used:
  std::int64_t used_ = 0;
  std::int64_t used_before_ = 0;
  void advance(Time now);
};

// How many sends this process may have under way.
class SlotsHeld {
 public:
  Question question;
  int granted = 0;
  bool contended = false;  // others want more, too
  Time may_ask_at{};
  // Whether to ask, for `wanted` in all.
  [[nodiscard]] bool asks(int wanted, Time now) const;
  // What it does not want any more it does not use from here on.
  void ask(int wanted, Time now);
  void got(const RedisState::Slots& slots, Time now);

 private:
  static constexpr Duration kAskAgain = std::chrono::milliseconds(20);
  int wanted_ = 0;  // at the last question
};

// The turns of sends under a rate that follows what the server says to all processes.
class SendTurns {
 public:
  Question question;
  // Zero: it may go. Else it asks again after that time.
  Duration take(Time now);
  void ended(bool throttled);
  // Whether to ask, and what.
  [[nodiscard]] bool asks(Time now) const;
  RedisState::Sends ask(Time now);
  void got(const RedisState::SendsView& view, Time now);
  [[nodiscard]] bool has_news() const { return sends_.ended > 0; }

 private:
  RedisState::Sends sends_;
  bool limited_ = false;
  std::int64_t granted_ = 0;
  Time ask_again_{};
};

// A circuit that all processes vote on.
class CircuitVotes {
 public:
  Question question;
  // By SharedState until the remote state says how it stands, or who probes.
  [[nodiscard]] guard::Hold held(Time now) const;
  // Of a send that goes out now.
  [[nodiscard]] std::uint32_t generation() const {
    return static_cast<std::uint32_t>(view_.generation) | kOfAll;
  }
  // Whether a grant is of a generation of all processes, and not of this one's own breaker.
  [[nodiscard]] static bool counts(const SendGrant& grant) {
    return (grant.generation & kOfAll) != 0;
  }
  // The number of the probe that a send goes out as; 0 if it is none.
  std::uint32_t take_probe();
  // It has ended. True: the votes should be told now, for they change the state.
  bool vote(const BreakerPolicy& policy, const SendGrant& grant, const SendEnd& end);
  void give_back(const SendGrant& grant);
  // What to tell, where there is something to tell or to ask.
  [[nodiscard]] bool has_votes() const;
  RedisState::Votes tell(const BreakerPolicy& policy, bool wants_probe, double unit_random,
                         Time now);
  void not_told() { question.forget(), probe_asked_ = false; }
  // True: the state has changed.
  bool got(const RedisState::CircuitView& view, Time now);
  // The same, from the news.
  bool heard(const RedisState::CircuitView& view);
  // By the program.
  void open_until(Time until);
  [[nodiscard]] const RedisState::CircuitView& view() const { return view_; }
  // Those of the view, with the votes that were not told yet.
  [[nodiscard]] guard::Counts sum() const;

 private:
  static constexpr std::uint32_t kOfAll = 1U << 31U;

  bool known_ = false;  // the remote state has said how it stands
  RedisState::CircuitView view_;
  RedisState::Votes votes_;
  Duration server_delay_{};
  Duration open_for_{};
  bool probe_asked_ = false;        // the reply that is due tells who probes
  bool probe_ = false;              // it is ours, and unused
  std::uint32_t probe_number_ = 0;  // of the latest
  Time no_probe_until_{};           // another has it
};

}  // namespace httpretry::fleet
