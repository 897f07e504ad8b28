// Breaker: decides whether the sends of one scope go out, by how earlier sends ended. A plain state
// machine, without clock, lock and random numbers.
//
//   closed     all sends go out; the breaker opens when too many fail
//   open       no send goes out until a given time
//   half-open  after that time a few probes go out: if all succeed, the breaker closes, and if one
//              fails, it opens
//
// Each change of the state begins a generation. Votes of earlier generations do not count. The kind
// Share is always closed, unless the program opens it. It counts differently, so a change to or
// from Share resets the breaker.
#pragma once

#include "window.hpp"

#include <httpretry/guard/shared_state.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace httpretry::guard {

// Returns whether `part` is at least this share of `all`.
inline bool reaches(std::uint32_t part, std::uint32_t all, double ratio) {
  return static_cast<double>(part) >= ratio * static_cast<double>(all);
}

// Returns whether a closed breaker must open. `counts` are the sends of its window.
[[nodiscard]] inline bool too_many_failed(const BreakerPolicy& policy, const Counts& counts,
                                          int in_a_row) {
  if (policy.failures > 0 && in_a_row >= policy.failures) return true;
  if (policy.kind != BreakerPolicy::Kind::Ratio) return false;
  if (counts.all < static_cast<std::uint32_t>(policy.min_requests)) return false;
  return reaches(counts.failed(), counts.all, policy.failure_ratio) ||
         (policy.slow_after != kForever && reaches(counts.slow, counts.all, policy.slow_ratio));
}

class Breaker {
 public:
  // Returns the earliest time at which a send may go out: `now` if one may already, and kNever if
  // only the end of a probe can change that. The kind Share holds a send back here only if the
  // program has opened it; otherwise it decides in `ask`.
  [[nodiscard]] Time held_until(const BreakerPolicy& policy, Time now) const {
    if (state_ == Circuit::Closed || changes_counting(policy)) return now;
    if (state_ == Circuit::Open) return std::max(opened_->until, now);
    if (may_probe(policy)) return now;
    auto next = kNever;
    for (const auto& probe : opened_->probes) {
      next = std::min(next, later(probe.sent, policy.probe_timeout));
    }
    return std::max(next, now);
  }
  // Decides about a send. Sets `grant.votes` if it may go out, and the numbers that `vote` and
  // `give_back` need.
  void ask(const BreakerPolicy& policy, Time now, double unit_random, SendGrant& grant) {
    if (changes_counting(policy)) close();
    counting_ = counting_of(policy);
    if (state_ == Circuit::Open && now < opened_->until) return;
    if (policy.kind == Kind::Share) {
      if (state_ == Circuit::Open) close();  // the program had opened it
      return ask_share(policy, now, unit_random, grant);
    }
    if (state_ == Circuit::Closed) return pass(grant);
    if (state_ == Circuit::Open) change_to(Circuit::HalfOpen);
    ask_probe(policy, now, grant);
  }
  // Fills `grant` for a send that goes out without `ask`. Its vote counts while the breaker is
  // closed.
  void pass(SendGrant& grant) const {
    grant.votes = true;
    grant.generation = generation_;
  }
  // Releases the place of a probe that did not go out, or whose end says nothing about the server.
  // Returns false if the send was not a probe of this generation.
  bool give_back(const SendGrant& grant) {
    if (grant.probe == 0 || grant.generation != generation_) return false;
    return std::erase_if(opened_->probes,
                         [&](const Probe& one) { return one.number == grant.probe; }) > 0;
  }
  // Counts how a send ended (its vote). Opens or closes the breaker if that is enough. Ignores a
  // send that `ask` admitted before the state last changed.
  void vote(const BreakerPolicy& policy, const SendGrant& grant, const SendEnd& end, Time now,
            double unit_random) {
    if (grant.generation != generation_) return;
    if (policy.kind == Kind::Share) {  // `ask` has already counted the send itself
      if (!end.failed) window_.add({.good = 1}, now, policy.share_window);
      return;
    }
    if (grant.probe != 0) {
      if (give_back(grant)) vote_of_probe(policy, end, now, unit_random);
      return;
    }
    if (state_ != Circuit::Closed) return;
    window_.add(
        {.all = 1, .good = end.failed ? 0U : 1U, .slow = end.took > policy.slow_after ? 1U : 0U},
        now, policy.window);
    in_a_row_ = end.failed ? in_a_row_ + 1 : 0;
    if (too_many_failed(policy, window_.sum(now), in_a_row_)) open(policy, end, now, unit_random);
  }

  void open_until(Time until) {
    if (!opened_) opened_ = std::make_unique<Opened>();
    opened_->until = until;
    opened_->counts_when_opened = {};
    opened_->why = "it was opened by the program";
    change_to(Circuit::Open);
  }
  // Resets the breaker. Votes of sends in flight do not count.
  void close() {
    change_to(Circuit::Closed);
    opened_.reset();
  }

  [[nodiscard]] Circuit state() const { return state_; }
  // Returns until when the breaker is open. Meaningful only in the state Open.
  [[nodiscard]] Time until() const { return opened_ ? opened_->until : Time(); }
  // Returns the sends of the window if the breaker is closed, otherwise the sends that opened it.
  // If a failed probe opened it, that is one send.
  [[nodiscard]] Counts counts(Time now) const {
    return state_ == Circuit::Closed ? window_.sum(now) : opened_->counts_when_opened;
  }
  // Returns a text for people that says what opened the breaker, if it is not closed.
  [[nodiscard]] std::string why_open() const { return opened_ ? opened_->why : std::string(); }
  // Returns whether this is in its initial state.
  [[nodiscard]] bool idle(Time now) const {
    return state_ == Circuit::Closed && in_a_row_ == 0 && window_.sum(now).all == 0 &&
           (!opened_ || quiet_windows(now) >= opened_->openings);
  }

 private:
  using Kind = BreakerPolicy::Kind;
  struct Probe {
    std::uint32_t number = 0;
    Time sent{};
  };
  // Most breakers never open, so this state is allocated only when one does.
  struct Opened {
    Time until{};
    Time closed_at{};
    Duration open_time{};       // how long it was last opened for
    Duration quiet_window{1};   // each such period without an opening decrements `openings`
    int openings = 0;           // in a row
    Counts counts_when_opened;  // of the sends that opened it
    std::string why;
    int good_probes = 0;
    std::uint32_t last_probe = 0;
    std::vector<Probe> probes;
  };
  // Which sends the window counts: those that called `ask` (Share), or those that ended.
  enum class Counting : std::uint8_t { Nothing, Asked, Ended };

  static Counting counting_of(const BreakerPolicy& policy) {
    return policy.kind == Kind::Share ? Counting::Asked : Counting::Ended;
  }
  // Returns whether a reloaded policy counts differently, so that the breaker must be reset.
  [[nodiscard]] bool changes_counting(const BreakerPolicy& policy) const {
    return counting_ != Counting::Nothing && counting_ != counting_of(policy);
  }
  // Refuses a random part of the sends: the more of them fail, the larger the part. This is the
  // client-side throttling of the SRE book: https://sre.google/sre-book/handling-overload/
  void ask_share(const BreakerPolicy& policy, Time now, double unit_random, SendGrant& grant) {
    const auto counts = window_.sum(now);
    const auto requests = static_cast<double>(counts.all);
    const auto good = static_cast<double>(counts.good);
    grant.refused_share = std::max(0.0, (requests - policy.k * good) / (requests + 1));
    // The send counts now and not when it ends, because a server may hang.
    window_.add({.all = 1}, now, policy.share_window);
    pass(grant);
    grant.votes = unit_random >= grant.refused_share;
  }
  [[nodiscard]] bool may_probe(const BreakerPolicy& policy) const {
    return static_cast<int>(opened_->probes.size()) + opened_->good_probes < policy.probes;
  }
  void ask_probe(const BreakerPolicy& policy, Time now, SendGrant& grant) {
    // A probe that never ends must not keep the breaker half-open forever.
    std::erase_if(opened_->probes,
                  [&](const Probe& one) { return now - one.sent >= policy.probe_timeout; });
    if (!may_probe(policy)) return;
    opened_->probes.push_back({++opened_->last_probe, now});
    pass(grant);
    grant.probe = opened_->last_probe;
  }
  void vote_of_probe(const BreakerPolicy& policy, const SendEnd& end, Time now,
                     double unit_random) {
    if (end.failed || end.took > policy.slow_after) return open(policy, end, now, unit_random);
    if (++opened_->good_probes < policy.probes) return;
    opened_->closed_at = now;
    change_to(Circuit::Closed);
  }
  // Opens the breaker because of a send that has ended: too many sends have failed, or the breaker
  // was half-open and this send, a probe, failed. The policy's backoff determines how long it stays
  // open. This time grows with the number of openings in a row, and is not less than the delay that
  // the server asked for. `unit_random`, in [0, 1), is for the backoff's jitter.
  void open(const BreakerPolicy& policy, const SendEnd& end, Time now, double unit_random) {
    if (!opened_) opened_ = std::make_unique<Opened>();
    auto& opened = *opened_;
    opened.quiet_window = std::max(policy.window, Duration(1));  // quiet_windows() divides by it
    if (state_ == Circuit::Closed) {
      // Each window that has passed without an opening takes one off the openings in a row.
      opened.openings = std::max(opened.openings - quiet_windows(now), 0);
      opened.counts_when_opened = window_.sum(now);  // for reports
      opened.why = why_opens(policy, opened.counts_when_opened);
    } else {
      opened.counts_when_opened = {.all = 1};
      opened.why = "a probe failed";
    }
    ++opened.openings;
    // Some backoffs compute a wait from the previous one, which counts only within the same row.
    const auto previous = opened.openings == 1 ? Duration() : opened.open_time;
    opened.open_time = delay(policy.open_for, opened.openings, previous, unit_random);
    opened.until = later(now, std::max(opened.open_time, end.server_delay));
    change_to(Circuit::Open);
  }
  // Returns for example "5 failures in a row" or "12 of 20 failed in 10 s".
  [[nodiscard]] std::string why_opens(const BreakerPolicy& policy, const Counts& counts) const {
    if (policy.failures > 0 && in_a_row_ >= policy.failures) {
      return std::to_string(in_a_row_) +
             (in_a_row_ == 1 ? " failure in a row" : " failures in a row");
    }
    const bool failed = reaches(counts.failed(), counts.all, policy.failure_ratio);
    return std::to_string(failed ? counts.failed() : counts.slow) + " of " +
           std::to_string(counts.all) + (failed ? " failed in " : " were slow in ") +
           duration_text(policy.window);
  }
  // Returns how many whole windows have passed since the breaker closed, at most `openings`. Each
  // one takes one off `openings`.
  [[nodiscard]] int quiet_windows(Time now) const {
    const auto windows = (now - opened_->closed_at) / opened_->quiet_window;
    return static_cast<int>(std::min<std::int64_t>(windows, opened_->openings));
  }
  void change_to(Circuit state) {
    state_ = state;
    ++generation_;
    in_a_row_ = 0;
    window_.clear();
    if (!opened_) return;
    opened_->good_probes = 0;
    opened_->probes.clear();
  }

  Circuit state_ = Circuit::Closed;
  Counting counting_ = Counting::Nothing;  // by the policy of the last `ask`
  std::uint32_t generation_ = 0;
  int in_a_row_ = 0;  // failures in a row
  Window window_;
  std::unique_ptr<Opened> opened_;  // nullptr if the breaker has not been open since the last reset
};

}  // namespace httpretry::guard
