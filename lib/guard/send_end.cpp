#include "send_end.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/retry/transport_kind.hpp"

#include <algorithm>
#include <array>

namespace httpretry::guard {
namespace {

// Whether the outcome says something about the server. What went wrong on our side does not.
bool counts(const Outcome& outcome, Time sent, Time now, Time deadline) {
  if (outcome) return true;
  const auto& error = outcome.error();
  const auto kind = policy::transport_kind(error);
  if (!kind) return false;
  // The caller's own end says little, unless the server had a second.
  if (kind == TransportKind::Timeout) {
    return now < deadline || now - sent >= std::chrono::seconds(1);
  }
  return !error.exchange.stale_connection && !error.exchange.refused;
}

// A response that is no redirect, nor from a cache, may say that nothing is left until a time.
std::optional<ServerDelay> nothing_left(const Outcome& outcome, WallTime wall_now) {
  if (!outcome || outcome->status / 100 == 3) return std::nullopt;
  const auto& headers = outcome->headers;
  if (!headers.contains("RateLimit") || headers.get("Age").value_or("0") != "0") {
    return std::nullopt;
  }
  static constexpr std::array kQuota{ServerDelaySource::RateLimit};
  auto delay = server_delay(headers, kQuota, true, wall_now);
  if (!delay) return std::nullopt;
  static constexpr std::array kAsked{ServerDelaySource::RetryAfter};
  auto asked = server_delay(headers, kAsked, true, wall_now);
  return asked ? asked : delay;
}

}  // namespace

SendEnd end_of(const RetryPolicy& policy, const Classified& found, const Outcome& outcome,
               const Call& call, Time sent) {
  const auto now = call.scheduler().now();
  const auto& breaker = policy.guards.breaker;
  const bool throttled = found.cls == Class::Throttle;
  SendEnd end;
  end.counts = counts(outcome, sent, now, Call::State::admission_deadline(call));
  end.failed = found.cls == Class::Transient || found.cls == Class::Transport ||
               (throttled && breaker && breaker->throttle_fails);
  end.dropped = throttled || found.cls == Class::Transport;
  end.responded = outcome.has_value() && !throttled;
  const auto first_byte = exchange_of(outcome).timings.first_byte;
  end.took = first_byte > Duration::zero() ? first_byte : now - sent;
  if (found.server_delay) {
    end.server_delay = std::min(found.server_delay->delay, policy.server_delay.max);
  }
  return end;
}

std::optional<ServerDelay> asked_pause(const Classified& found, const Outcome& outcome,
                                       WallTime wall_now) {
  auto delay = found.cls == Class::Throttle ? found.server_delay : nothing_left(outcome, wall_now);
  if (!delay || delay->do_not_retry || delay->delay <= Duration::zero()) return std::nullopt;
  return delay;
}

}  // namespace httpretry::guard
