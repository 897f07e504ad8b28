#include "limit_rules.hpp"

#include <chrono>

namespace httpretry::guard {

std::string_view without_kind(std::string_view key) { return key.substr(key.find(' ') + 1); }

const PausePolicy& pause_policy(const LimitKeys& keys, std::size_t which) {
  static const PausePolicy ramp;
  return which == kRamp ? ramp : keys.policy->pause;
}

bool asks_breaker(const LimitKeys& keys, const SendAsk& ask) {
  return !keys.breaker.empty() &&
         (ask.is_retry || keys.policy->breaker->applies_to == BreakerPolicy::AppliesTo::All);
}

Pause::End ramp_end(const SendEnd* end) {
  if (end == nullptr || !end->counts) return Pause::End::Unknown;
  return end->responded ? Pause::End::Responded : Pause::End::Failed;
}

void learn(Slots& slots, const LimitKeys& keys, const SendEnd& end, Time now,
           StateChanges& changes) {
  const auto& policy = *keys.policy->concurrency;
  const auto before = slots.limit(policy);
  slots.learn(policy, end.dropped, now);
  const auto after = slots.limit(policy);
  if (after == before) return;
  auto& change = changes.limit.emplace();
  change.key = without_kind(keys.slots);
  change.from = before;
  change.to = after;
}

std::optional<WallTime> wall_time(Time when, Time now, WallTime wall_now) {
  if (when == kNever) return std::nullopt;
  return wall_now + std::chrono::duration_cast<WallTime::duration>(when - now);
}

}  // namespace httpretry::guard
