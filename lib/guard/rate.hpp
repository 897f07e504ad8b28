// Rate: the sends of one scope within a rate, by the generic cell rate algorithm. One number: the
// time at which the tokens would be full again. A plain state machine, without clock and lock.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

#include <algorithm>

namespace httpretry::guard {

class Rate {
 public:
  // When `count` tokens are there; kNever for more than a burst.
  [[nodiscard]] Time ready_at(const RatePolicy& policy, std::int64_t count = 1) const {
    if (count > policy.burst) return kNever;
    return full_at_ - (policy.burst - count) * interval(policy);
  }
  // Not before `ready_at`.
  void take(const RatePolicy& policy, Time now, std::int64_t count = 1) {
    full_at_ = std::max(full_at_, now) + count * interval(policy);
  }
  [[nodiscard]] std::int64_t left(const RatePolicy& policy, Time now) const {
    const auto missing = std::max(full_at_ - now, Duration::zero());
    const auto each = interval(policy);
    return std::max<std::int64_t>(policy.burst - (missing + each - Duration(1)) / each, 0);
  }
  // When all tokens are there.
  [[nodiscard]] Time full_at() const { return full_at_; }
  // As new.
  [[nodiscard]] bool idle(Time now) const { return full_at_ <= now; }

 private:
  static Duration interval(const RatePolicy& policy) {
    return std::max(policy.per / policy.requests, Duration(1));
  }

  Time full_at_{};
};

}  // namespace httpretry::guard
