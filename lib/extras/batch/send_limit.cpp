#include "send_limit.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::batch {

// Follows the generic cell rate algorithm: sends are evenly spaced, but up to `burst` of them may
// go out at once after a quiet time.
Time SendLimit::ready_at(Time full_at) const {
  return full_at - (policy_.burst - 1) * (policy_.per / policy_.requests);
}

Time SendLimit::ready_after(std::size_t sends, Time now) {
  const std::lock_guard lock(mutex_);
  if (sends == 0) return ready_at(full_at_);
  const auto count = static_cast<Duration::rep>(sends);
  return ready_at(std::max(full_at_, now) + count * (policy_.per / policy_.requests));
}

Time SendLimit::reserve(Time now) {
  const std::lock_guard lock(mutex_);
  const auto when = std::max(now, ready_at(full_at_));
  full_at_ = std::max(full_at_, when) + policy_.per / policy_.requests;
  return when;
}

// Returns a middleware that delays each send of a call until the rate of the run allows it. Each
// send reserves a time under the rate and waits for it. The Runner has reserved the time of a job's
// first send when it started the call; it is in the context of the call. A retry reserves one here.
MiddlewarePtr rate_limited_sends(std::shared_ptr<SendLimit> limit) {
  return middleware(
      "rate of the run",
      [limit = std::move(limit)](Request request, Call& call, Next next) -> Task<Outcome> {
        auto* const first_send = call.get<FirstSendTaken>();  // null: not sent by the Runner
        const bool is_first = first_send != nullptr && !first_send->used;
        if (is_first) first_send->used = true;
        const auto send_at = is_first ? first_send->when : limit->reserve(call.scheduler().now());
        // If the call is canceled during the wait, the transport returns that as an error.
        const auto sleep = call.scheduler().sleep_until(send_at, call.stop());
        co_await sleep;
        const auto task = next(std::move(request), call);
        Outcome outcome = co_await task;
        co_return outcome;
      });
}

}  // namespace httpretry::batch
