// The state that one process keeps of a scope whose limits it shares with other processes: plain
// state machines without clocks and locks.
#pragma once

#include "redis_state.hpp"

#include "lib/core/guard/detail/limits.hpp"

#include <deque>

namespace httpretry::fleet {

// A send that waits for a reply checks again after this time. The reply also wakes it.
inline constexpr Duration kRecheckAfter = std::chrono::milliseconds(5);

[[nodiscard]] ConcurrencyPolicy with_max(ConcurrencyPolicy policy, int max);
// Returns the policy with the share that one of `workers` processes has of each limit.
[[nodiscard]] GuardPolicy share_of(GuardPolicy policy, int workers);
[[nodiscard]] BudgetPolicy share_of(BudgetPolicy policy, int workers);

// A query whose reply a send may wait for.
class Query {
 public:
  [[nodiscard]] bool is_pending() const { return pending_; }
  [[nodiscard]] bool has_failed_recently(Time now) const { return now < failed_until_; }
  // Returns whether the remote state decides: it is up, the last query did not fail, and no reply
  // is overdue. Otherwise this process decides alone.
  [[nodiscard]] bool can_use(const RedisState& remote, Time now) const {
    return remote.up() && !has_failed_recently(now) &&
           !(pending_ && now - started_at_ >= remote.patience());
  }
  [[nodiscard]] Time started_at() const { return started_at_; }
  [[nodiscard]] bool can_start(Time now) const { return !pending_ && !has_failed_recently(now); }
  void start(Time now) { pending_ = true, started_at_ = now; }
  // Returns false if there is no reply.
  bool on_reply(bool away, Time now) {
    pending_ = false;
    if (away) failed_until_ = now + kAfterError;
    return !away;
  }
  // The query was not sent after all.
  void cancel() { pending_ = false; }

 private:
  // How long this process decides alone after an error.
  static constexpr Duration kAfterError = std::chrono::seconds(1);
  bool pending_ = false;
  Time started_at_{};
  Time failed_until_{};
};

// TokensAhead: the tokens of a rate that this process has taken before it needs them. It keeps
// about as many as it used in the last 100 ms.
class TokensAhead {
 public:
  Query query;
  [[nodiscard]] bool has_some() const { return !batches_.empty(); }
  // Returns when the first token may be used or, without tokens, when to query again.
  [[nodiscard]] Time ready_at() const;
  void take(Time now);
  // Returns how many tokens to request; 0 if it should not query now.
  std::int64_t wanted(const RatePolicy& policy, int waiting, Time now);
  void on_reply(const RedisState::Tokens& tokens, Time now);
  // Allows a new query if the last one is old. Other processes may have given tokens back since.
  void forget_stale_reply(Time now);
  // Removes all tokens if none was used lately. Returns how many to give back.
  std::int64_t take_unused(Time now);
  // Removes all tokens. Returns how many to give back.
  std::int64_t take_all();
  [[nodiscard]] std::int64_t count() const;

 private:
  struct Batch {
    std::int64_t count = 0;
    Time first{};
    Duration each{};
  };
  std::deque<Batch> batches_;
  Time ask_again_{};
  std::int64_t slot_ = 0;         // number of the current 100 ms (kAhead)
  std::int64_t used_ = 0;         // tokens used in this slot
  std::int64_t used_before_ = 0;  // tokens used in the slot before
  void advance(Time now);
};

// Returns whether the tokens of a rate are reserved for each send, because a send may take many of
// them, or tokens of several rates together.
[[nodiscard]] bool reserves_per_send(const RatePolicy& policy);

// ReservedTokens: the tokens that this process has reserved for its next sends. Unlike TokensAhead,
// it has several rates, and a query for each send.
class ReservedTokens {
 public:
  using Amounts = RedisState::Amounts;

  Query query;
  [[nodiscard]] bool has_some() const;
  // Returns what a send lacks. All amounts are 0 if it lacks nothing.
  [[nodiscard]] Amounts missing(const RatePolicy& policy, std::int64_t cost) const;
  [[nodiscard]] bool cover(const RatePolicy& policy, std::int64_t cost) const;
  // Returns when the tokens may be used.
  [[nodiscard]] Time ready_at() const { return ready_at_; }
  void take(const RatePolicy& policy, std::int64_t cost);
  // Returns the amounts that the sends that wait can use.
  [[nodiscard]] Amounts usable(const RatePolicy& policy, const guard::SendsAhead& waiting) const;
  [[nodiscard]] const Amounts& amounts() const { return amounts_; }
  // Notes that a query requests these tokens. With `gives_back`, it exchanges all others for them.
  // Returns the tokens that are given back.
  Amounts start_query(const RatePolicy& policy, Amounts wanted, bool gives_back, Time now);
  void on_reply(const RedisState::Reservation& reservation, Time now);

 private:
  Amounts amounts_;
  Amounts requested_;          // by the query without a reply
  Time ready_before_{kNever};  // of the tokens that the query has exchanged
  Time ready_at_{};
};

// SlotsHeld: the number of sends that this process may have in flight.
class SlotsHeld {
 public:
  Query query;
  int granted = 0;
  bool contended = false;  // the processes together want more slots than there are
  Time may_ask_at{};       // the next time for a query
  // Returns whether to request more slots, `wanted` in total.
  [[nodiscard]] bool should_query(int wanted, Time now) const;
  // Also gives up the slots above `wanted` at once, because the server will grant them to others.
  void start_query(int wanted, Time now);
  void on_reply(const RedisState::Slots& slots, Time now);

 private:
  static constexpr Duration kAskAgain = std::chrono::milliseconds(20);
  int wanted_ = 0;  // at the last query
};

// AdaptiveSends: the sends that this process may make under a send rate that all processes adapt to
// the server's throttles.
class AdaptiveSends {
 public:
  Query query;
  // Returns zero if the send may go out, otherwise how long it waits before it calls this again.
  Duration take(Time now);
  void on_attempt_ended(bool throttled);
  [[nodiscard]] bool should_query(Time now) const;
  // Returns the counts to send, and resets them.
  RedisState::Sends start_query(Time now);
  void on_reply(const RedisState::SendsView& view, Time now);
  [[nodiscard]] bool has_unsent_counts() const { return sends_.ended > 0; }

 private:
  RedisState::Sends sends_;
  bool limited_ = false;
  std::int64_t granted_ = 0;
  Time ask_again_{};
};

// CircuitVotes: a circuit that all processes vote on, as this process last saw it, and the votes
// that it has not sent yet.
class CircuitVotes {
 public:
  Query query;
  // Returns what holds a send back. This is QueuedBy::SharedState until the remote state has
  // replied with the circuit's state, or with the process that may probe.
  [[nodiscard]] guard::Hold hold(Time now) const;
  // Returns the generation for a send that goes out now.
  [[nodiscard]] std::uint32_t generation() const {
    return static_cast<std::uint32_t>(view_.generation) | kOfAll;
  }
  // Returns whether a grant has a generation of the shared circuit, not of this process's breaker.
  [[nodiscard]] static bool is_shared(const SendGrant& grant) {
    return (grant.generation & kOfAll) != 0;
  }
  // Returns the number of the probe if the send is one, otherwise 0.
  std::uint32_t take_probe();
  // Counts the end of a send. Returns true if the votes should be sent at once, because they may
  // change the state.
  bool vote(const BreakerPolicy& policy, const SendGrant& grant, const SendEnd& end);
  // Makes the probe of a send available again, if it was one that did not go out.
  void give_back(const SendGrant& grant);
  [[nodiscard]] bool has_votes() const;
  // Returns the votes to send, and resets them.
  RedisState::Votes start_query(const BreakerPolicy& policy, bool wants_probe, double unit_random,
                                Time now);
  void cancel_query() { query.cancel(), probe_requested_ = false; }
  // Both return true if the state has changed. `update` takes a view from RedisState::Snapshot.
  bool on_reply(const RedisState::CircuitView& view, Time now);
  bool update(const RedisState::CircuitView& view);
  // Opens the circuit for the program.
  void open_until(Time until);
  [[nodiscard]] const RedisState::CircuitView& view() const { return view_; }
  // Returns the counts of the view plus the votes that were not sent yet.
  [[nodiscard]] guard::Counts sum_with_votes() const;

 private:
  // Marks the generations of the shared circuit.
  static constexpr std::uint32_t kOfAll = 1U << 31U;

  [[nodiscard]] bool may_vote(const SendGrant& grant) const;
  int count_failures_in_a_row(bool failed);

  bool known_ = false;  // the view comes from the remote state
  RedisState::CircuitView view_;
  RedisState::Votes votes_;
  Duration server_delay_{};
  Duration open_for_{};
  bool probe_requested_ = false;    // by the pending query
  bool has_probe_ = false;          // this process may send a probe, and has not yet
  std::uint32_t probe_number_ = 0;  // of the latest probe
  Time no_probe_until_{};           // another process has the probe until then
};

}  // namespace httpretry::fleet
