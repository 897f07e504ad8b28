// Rate: the sends of one scope within a rate, by the generic cell rate algorithm. One number: the
// time at which the tokens would be full again. A plain state machine, without clock and lock.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

#include <algorithm>

namespace httpretry::guard {

class Rate {
 public:
  // When there is a token.
  [[nodiscard]] Time ready_at(const RatePolicy& policy) const {
    return full_at_ - (policy.burst - 1) * interval(policy);
  }
  // Not before `ready_at`.
  void take(const RatePolicy& policy, Time now) {
    full_at_ = std::max(full_at_, now) + interval(policy);
  }
  // When all tokens are there.
  [[nodiscard]] Time full_at() const { return full_at_; }
  // As new.
  [[nodiscard]] bool idle(Time now) const { return full_at_ <= now; }

 private:
  static Duration interval(const RatePolicy& policy) {
    return std::max<Duration>(policy.per / policy.requests, Duration(1));
  }

  Time full_at_{};
};

}  // namespace httpretry::guard
