// SendLimit: how many requests a run sends in which time. Jobs take their first send from it before
// they start; a middleware below retry() takes all others.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/retry/guard_policy.hpp>

#include <mutex>

namespace httpretry::batch {

// Safe to use from many threads at once.
class SendLimit {
 public:
  explicit SendLimit(RatePolicy policy) : policy_(policy) {}

  // When one send may happen.
  [[nodiscard]] Time ready_at();
  // Takes one send; returns when it may happen.
  Time reserve(Time now);

 private:
  [[nodiscard]] Time next() const;

  std::mutex mutex_;
  RatePolicy policy_;
  Time full_at_{};  // when a whole burst may be sent again
};

// In the context of a request: when its first send may happen, taken already.
struct FirstSendTaken {
  Time when{};
  bool used = false;
};

// Makes the sends of a call wait for the limit.
MiddlewarePtr limited_sends(std::shared_ptr<SendLimit> limit);

}  // namespace httpretry::batch
