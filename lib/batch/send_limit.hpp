// SendLimit: how many requests a run sends in which time. Jobs take their first send from it before
// they start; a middleware below retry() takes all others.
#pragma once

#include "lib/guard/rate.hpp"

#include <httpretry/flow/middleware.hpp>

#include <mutex>
#include <optional>

namespace httpretry::batch {

// Safe to use from many threads at once.
class SendLimit {
 public:
  explicit SendLimit(RatePolicy policy) : policy_(policy) {}

  // Takes one send if it may happen now. Else returns when it may.
  std::optional<Time> try_take(Time now);
  // Takes one send; returns when it may happen.
  Time reserve(Time now);

 private:
  std::mutex mutex_;
  RatePolicy policy_;
  guard::Rate rate_;
};

// In the context of a request whose first send is taken already.
struct FirstSendTaken {
  bool used = false;
};

// Makes the sends of a call wait for the limit.
MiddlewarePtr limited_sends(std::shared_ptr<SendLimit> limit);

}  // namespace httpretry::batch
