#include "hedge_state.hpp"

#include "lib/core/retry/policy_limits.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::guard {
namespace {

constexpr double kLeast = 1e5;  // nanoseconds; the upper bound of the first bucket
constexpr double kError = 0.05;
constexpr double kGrowth = (1 + kError) / (1 - kError);

std::int64_t slot_number(Time now) {
  return std::max<Duration>(now.time_since_epoch(), Duration::zero()) / std::chrono::seconds(10);
}

// The upper bound of each bucket in nanoseconds.
constexpr auto kMost = [] {
  std::array<std::int64_t, kBuckets> most{};
  double next = kLeast;
  for (auto& each : most) {
    each = static_cast<std::int64_t>(next);
    next *= kGrowth;
  }
  return most;
}();

// Returns the bucket of a sample. The last one also holds all samples beyond the range.
std::size_t bucket_of(Duration sample) {
  const auto* const found = std::lower_bound(kMost.begin(), kMost.end() - 1, sample.count());
  return static_cast<std::size_t>(found - kMost.begin());
}

Duration middle_of(std::size_t bucket) {
  const auto scaled = 2 * std::pow(kGrowth, static_cast<double>(bucket)) / (kGrowth + 1);
  return Duration(static_cast<std::int64_t>(scaled * kLeast));
}

}  // namespace

bool Sketch::is_recent(const Slot& slot, Time now) {
  const auto current = slot_number(now);
  return slot.number > current - kSlots && slot.number <= current;
}

void Sketch::add(Duration sample, Time now) {
  const auto number = slot_number(now);
  auto& slot = slots_[static_cast<std::size_t>(number) % slots_.size()];
  if (slot.number != number) slot = {.number = number};
  ++slot.count;
  ++slot.buckets[bucket_of(sample)];
}

std::uint32_t Sketch::count(Time now) const {
  std::uint32_t count = 0;
  for (const auto& slot : slots_) count += is_recent(slot, now) ? slot.count : 0;
  return count;
}

// Returns the duration below which the part `q` of the samples lies, or nullopt without samples:
// the middle of the first bucket at which the number of samples so far exceeds that part.
std::optional<Duration> Sketch::quantile(double q, Time now) const {
  const auto sample_count = count(now);
  if (sample_count == 0) return std::nullopt;
  const auto rank = static_cast<std::uint32_t>(q * (sample_count - 1));
  std::uint32_t count_so_far = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (const auto& slot : slots_) count_so_far += is_recent(slot, now) ? slot.buckets[bucket] : 0;
    if (count_so_far > rank) return middle_of(bucket);
  }
  return middle_of(kBuckets - 1);
}

// Returns how long a send may have no response before its hedge (a second send) goes out: the
// policy's fixed time, or a quantile of the recent response times, for example the time within
// which 95 % of the responses came. Sets `refused` in the result if no hedge may be sent, because
// there are too few response times (samples) or the quantile is over the policy's maximum.
HedgeDelay HedgeState::delay(const HedgePolicy& policy, Time now) {
  HedgeDelay delay;
  delay.after = policy.after;
  if (policy.quantile == 0) return delay;  // the time is fixed
  const std::lock_guard lock(mutex_);
  const auto sample_count = sketch_.count(now);
  // Without samples there is no quantile, and the maximum stands in for it.
  const auto quantile = sketch_.quantile(policy.quantile, now).value_or(policy.max);
  const bool too_few_samples = sample_count < static_cast<std::uint32_t>(policy.min_samples);
  if (too_few_samples && policy.initial) {
    delay.after = *policy.initial;  // the policy's time for a scope with too few samples
    return delay;
  }
  if (quantile > policy.max) delay.refused = HedgeRefused::OverRange;
  if (too_few_samples) delay.refused = HedgeRefused::Warming;  // takes precedence
  // Needed even for a refused hedge: the refusal is reported when the hedge would go out.
  delay.after = std::max(std::min(quantile, policy.max), policy.min);
  delay.samples = sample_count;
  return delay;
}

ScopeState HedgeState::facts(const std::string& key, Time now) {
  const std::lock_guard lock(mutex_);
  ScopeState facts;
  facts.key = key;
  facts.calls = budget_.calls(now);
  facts.hedges = budget_.hedges(now);
  facts.samples = sketch_.count(now);
  if (now < throttled_until_) facts.until = throttled_until_;
  return facts;
}

std::string source_text(const HedgePolicy& policy, const HedgeDelay& delay) {
  if (policy.quantile == 0) return "fixed";
  if (delay.samples == 0) return "initial";
  return policy::quantile_text(policy.quantile) + " of " + std::to_string(delay.samples) +
         " samples";
}

}  // namespace httpretry::guard
