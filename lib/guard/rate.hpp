// Rate: the sends of one scope within a rate, by the generic cell rate algorithm. One number: the
// time at which the tokens would be full again. A plain state machine, without clock and lock.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

namespace httpretry::guard {

class HTTPRETRY_API Rate {
 public:
  // When `count` tokens are there; kNever for more than a burst.
  [[nodiscard]] Time ready_at(const RatePolicy& policy, std::int64_t count = 1) const;
  // Not before `ready_at`.
  void take(const RatePolicy& policy, Time now, std::int64_t count = 1);
  [[nodiscard]] std::int64_t left(const RatePolicy& policy, Time now) const;
  // When all tokens are there.
  [[nodiscard]] Time full_at() const { return full_at_; }
  // As new.
  [[nodiscard]] bool idle(Time now) const { return full_at_ <= now; }

 private:
  Time full_at_{};
};

}  // namespace httpretry::guard
