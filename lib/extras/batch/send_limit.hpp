// SendLimit limits the rate at which a run sends requests. The Runner reserves the first send of a
// job before the call starts. A middleware below retry() reserves all others.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/retry/guard_policy.hpp>

#include <cstddef>
#include <mutex>

namespace httpretry::batch {

// Thread-safe.
class SendLimit {
 public:
  explicit SendLimit(RatePolicy policy) : policy_(policy) {}

  // Returns the earliest time for the send that follows the next `sends` ones.
  [[nodiscard]] Time ready_after(std::size_t sends, Time now);
  // Reserves one send, and returns the time at which it may happen.
  Time reserve(Time now);

 private:
  // Returns the earliest time for a send if a full burst may be sent again at `full_at`.
  [[nodiscard]] Time ready_at(Time full_at) const;

  std::mutex mutex_;
  RatePolicy policy_;
  Time full_at_{};  // when a full burst may be sent again
};

// The reserved time of a job's first send, in the context of its request.
struct FirstSendTaken {
  Time when{};
  bool used = false;
};

// Returns a middleware that makes the sends of a call wait for the limit.
MiddlewarePtr rate_limited_sends(std::shared_ptr<SendLimit> limit);

}  // namespace httpretry::batch
