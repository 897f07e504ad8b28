#include "lib/batch/send_limit.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::batch {

std::optional<Time> SendLimit::try_take(Time now) {
  const std::lock_guard lock(mutex_);
  const auto ready = rate_.ready_at(policy_);
  if (ready > now) return ready;
  rate_.take(policy_, now);
  return std::nullopt;
}

Time SendLimit::reserve(Time now) {
  const std::lock_guard lock(mutex_);
  const auto when = std::max(now, rate_.ready_at(policy_));
  rate_.take(policy_, when);
  return when;
}

MiddlewarePtr limited_sends(std::shared_ptr<SendLimit> limit) {
  return middleware(
      "rate of the run",
      [limit = std::move(limit)](Request request, Call& call, Next next) -> Task<Outcome> {
        auto* const first = call.get<FirstSendTaken>();
        if (first == nullptr || std::exchange(first->used, true)) {
          const auto when = limit->reserve(call.scheduler().now());
          // Canceled: the transport says so.
          co_await call.scheduler().sleep_until(when, call.stop());
        }
        const auto task = next(std::move(request), call);
        Outcome outcome = co_await task;
        co_return outcome;
      });
}

}  // namespace httpretry::batch
