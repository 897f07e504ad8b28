#include "hedge_state.hpp"

#include "lib/retry/policy_limits.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

// A product such as 0.07 * 100 may be a little off.
constexpr double kRounding = 1e-9;
// A quantile is read again when there are so many more samples.
constexpr std::uint32_t kPartOfSamples = 32;

std::int64_t second_of(Time now) {
  return std::max<std::int64_t>(now.time_since_epoch() / std::chrono::seconds(1), 0);
}

HedgeDelay delay_of(Duration after, std::uint32_t samples = 0,
                    std::optional<HedgeRefused> refused = {}) {
  HedgeDelay delay;
  delay.after = after;
  delay.samples = samples;
  delay.refused = refused;
  return delay;
}

}  // namespace

HedgeBudget::Second& HedgeBudget::at(Time now) {
  const auto number = second_of(now);
  auto& second = seconds_[static_cast<std::size_t>(number % kSeconds)];
  if (second.number != number) second = {number, 0, 0};
  return second;
}

HedgeBudget::Second HedgeBudget::sum(Time now) const {
  const auto current = second_of(now);
  Second sum;
  for (const auto& second : seconds_) {
    if (second.number <= current - kSeconds || second.number > current) continue;
    sum.calls += second.calls;
    sum.hedges += second.hedges;
  }
  return sum;
}

std::int64_t HedgeBudget::most(double per_call, Time now) const {
  return static_cast<std::int64_t>(per_call * sum(now).calls + kRounding);
}

std::int64_t HedgeBudget::left(double per_call, Time now) const {
  return most(per_call, now) - sum(now).hedges;
}

bool HedgeBudget::take(double per_call, Time now) {
  if (left(per_call, now) < 1) return false;
  ++at(now).hedges;
  return true;
}

// What was taken in an earlier second is given back in this one: the sum is the same.
void HedgeBudget::give_back(Time now) { --at(now).hedges; }

void HedgeState::begin_call(Time now) {
  last_call_ = now;
  budget_.count_call(now);
}

bool HedgeState::take(const HedgePolicy& policy, Time now) {
  return !policy.budget || budget_.take(*policy.budget, now);
}

Duration HedgeState::quantile(double q, std::uint32_t count, Time now) {
  const bool same = read_.quantile == q && count >= read_.count &&
                    count - read_.count <= count / kPartOfSamples &&
                    now - read_.when < std::chrono::seconds(1);
  if (!same || read_.count == 0) {
    read_ = {q, count, now, sketch_.quantile(q, now).value_or(Duration::zero())};
  }
  return read_.value;
}

HedgeDelay HedgeState::delay(const HedgePolicy& policy, Time now) {
  if (policy.quantile == 0) return delay_of(policy.after);
  const auto count = sketch_.count(now);
  if (count < static_cast<std::uint32_t>(policy.min_samples)) {
    if (policy.initial) return delay_of(*policy.initial);
    // Asked when it would go out: by what is known, or at the latest time.
    const auto guess = count == 0 ? policy.max : *sketch_.quantile(policy.quantile, now);
    return delay_of(std::clamp(guess, policy.min, policy.max), count, HedgeRefused::Warming);
  }
  const auto value = quantile(policy.quantile, count, now);
  if (value > policy.max) return delay_of(policy.max, count, HedgeRefused::OverRange);
  return delay_of(std::max(value, policy.min), count);
}

bool HedgeState::idle(Time now) const {
  return now - last_call_ > std::chrono::seconds(30) && !throttled(now);
}

std::string source_text(const HedgePolicy& policy, const HedgeDelay& delay) {
  if (policy.quantile == 0) return "fixed";
  if (delay.samples == 0) return "initial";
  return policy::quantile_text(policy.quantile) + " of " + std::to_string(delay.samples) +
         " samples";
}

}  // namespace httpretry::guard
