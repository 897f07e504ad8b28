#include "send_limit.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::batch {

// Evenly spaced sends, with bursts: the generic cell rate algorithm.
Time SendLimit::next() const {
  return full_at_ - (policy_.burst - 1) * (policy_.per / policy_.requests);
}

Time SendLimit::ready_at() {
  const std::lock_guard lock(mutex_);
  return next();
}

Time SendLimit::reserve(Time now) {
  const std::lock_guard lock(mutex_);
  const auto when = std::max(now, next());
  full_at_ = std::max(full_at_, when) + policy_.per / policy_.requests;
  return when;
}

MiddlewarePtr limited_sends(std::shared_ptr<SendLimit> limit) {
  return middleware(
      "rate of the run",
      [limit = std::move(limit)](Request request, Call& call, Next next) -> Task<Outcome> {
        auto* const first = call.get<FirstSendTaken>();
        const bool taken = first != nullptr && !std::exchange(first->used, true);
        const auto when = taken ? first->when : limit->reserve(call.scheduler().now());
        // If the call is canceled during the wait, the transport returns that as an error.
        const auto sleep = call.scheduler().sleep_until(when, call.stop());
        co_await sleep;
        const auto task = next(std::move(request), call);
        Outcome outcome = co_await task;
        co_return outcome;
      });
}

}  // namespace httpretry::batch
