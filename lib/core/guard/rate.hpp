// Rate: the sends of one scope within the rates of a policy, by the generic cell rate algorithm.
// One number for each rate: the time at which its tokens would be full again. A plain state
// machine, without clock and lock.
#pragma once

#include "lib/core/base/saturating.hpp"

#include <httpretry/retry/guard_policy.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace httpretry::guard {

// The sends that go before a send, and what they cost.
struct SendsAhead {
  std::int64_t number = 0;
  std::int64_t cost = 0;
};

class Rate {
 public:
  // Returns when all rates have the tokens for a send, after the sends ahead of it.
  [[nodiscard]] Time ready_at(const RatePolicy& policy, std::int64_t cost = 1,
                              const SendsAhead& ahead = {}) const {
    auto ready = ready_at(policy, full_at_, cost, ahead);
    for (std::size_t i = 0; i < policy.further.size(); ++i) {
      const auto full_at = i < further_.size() ? further_[i] : Time();
      ready = std::max(ready, ready_at(policy.further[i], full_at, cost, ahead));
    }
    return ready;
  }
  // Takes the tokens from all rates. Must not be called before the time `ready_at`.
  void take(const RatePolicy& policy, Time now, std::int64_t cost = 1) {
    take(policy, full_at_, now, cost);
    further_.resize(policy.further.size());  // a reloaded policy may have more
    for (std::size_t i = 0; i < further_.size(); ++i) {
      take(policy.further[i], further_[i], now, cost);
    }
  }
  // Returns when all tokens will be available again.
  [[nodiscard]] Time full_at() const {
    return further_.empty() ? full_at_ : std::max(full_at_, *std::ranges::max_element(further_));
  }
  // Returns whether this is in its initial state.
  [[nodiscard]] bool idle(Time now) const { return full_at() <= now; }

  // Returns the time in which a rate allows this amount.
  static Duration time_for(const RatePolicy& policy, std::int64_t amount) {
    if (policy.counts == RatePolicy::Counts::Requests) {
      const auto each = std::max<Duration>(policy.per / policy.requests, Duration(1));
      return saturating::times(static_cast<std::uint64_t>(amount), each);
    }
    // The time for one token need not be a whole number of nanoseconds.
    constexpr double kLongest = 4e18;  // more than 100 years, and far from an overflow
    const auto time = static_cast<double>(amount) * static_cast<double>(policy.per.count()) /
                      static_cast<double>(policy.requests);
    return Duration(static_cast<Duration::rep>(std::ceil(std::min(time, kLongest))));
  }

 private:
  // A send that costs more than the burst waits for the full burst, and then takes tokens in
  // advance. This occurs only for a share of a rate that processes divide among themselves.
  static Time ready_at(const RatePolicy& policy, Time full_at, std::int64_t cost,
                       const SendsAhead& ahead) {
    const bool counts_cost = policy.counts == RatePolicy::Counts::Cost;
    const auto left = policy.burst - std::min(policy.amount_of(cost), policy.burst) -
                      (counts_cost ? ahead.cost : ahead.number);
    return left >= 0 ? full_at - time_for(policy, left)
                     : saturating::plus(full_at, time_for(policy, -left));
  }
  static void take(const RatePolicy& policy, Time& full_at, Time now, std::int64_t cost) {
    full_at = std::max(full_at, now) + time_for(policy, policy.amount_of(cost));
  }

  Time full_at_{};
  std::vector<Time> further_;
};

}  // namespace httpretry::guard
