#include "sketch.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::guard {
namespace {

constexpr double kLeast = 1e5;  // nanoseconds
constexpr double kError = 0.05;
constexpr double kGrowth = (1 + kError) / (1 - kError);

std::int64_t slot_number(Time now) {
  return std::max(now.time_since_epoch(), Duration::zero()) / std::chrono::seconds(10);
}

// The most nanoseconds that each bucket takes.
constexpr auto kMost = [] {
  std::array<std::int64_t, kBuckets> most{};
  double next = kLeast;
  for (auto& each : most) {
    each = static_cast<std::int64_t>(next);
    next *= kGrowth;
  }
  return most;
}();

// What is over the range goes to the last bucket.
std::size_t bucket_of(Duration sample) {
  const auto* const found = std::lower_bound(kMost.begin(), kMost.end() - 1, sample.count());
  return static_cast<std::size_t>(found - kMost.begin());
}

Duration middle_of(std::size_t bucket) {
  const auto scaled = 2 * std::pow(kGrowth, static_cast<double>(bucket)) / (kGrowth + 1);
  return Duration(static_cast<std::int64_t>(scaled * kLeast));
}

}  // namespace

bool Sketch::counts(const Slot& slot, Time now) {
  const auto current = slot_number(now);
  return slot.number > current - kSlots && slot.number <= current;
}

void Sketch::add(Duration sample, Time now) {
  const auto number = slot_number(now);
  auto& slot = slots_[static_cast<std::size_t>(number) % slots_.size()];
  if (slot.number != number) {
    slot = Slot();
    slot.number = number;
  }
  ++slot.count;
  ++slot.buckets[bucket_of(sample)];
}

std::uint32_t Sketch::count(Time now) const {
  std::uint32_t count = 0;
  for (const auto& slot : slots_) count += counts(slot, now) ? slot.count : 0;
  return count;
}

std::optional<Duration> Sketch::quantile(double q, Time now) const {
  const auto all = count(now);
  if (all == 0) return std::nullopt;
  const auto rank = static_cast<std::uint32_t>(q * (all - 1));
  std::uint32_t seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (const auto& slot : slots_) seen += counts(slot, now) ? slot.buckets[bucket] : 0;
    if (seen > rank) return middle_of(bucket);
  }
  return middle_of(kBuckets - 1);
}

}  // namespace httpretry::guard
