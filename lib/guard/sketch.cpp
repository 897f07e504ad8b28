#include "sketch.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::guard {
namespace {

constexpr double kLeast = 1e5;  // nanoseconds
constexpr double kError = 0.05;
constexpr double kGrowth = (1 + kError) / (1 - kError);

std::int64_t slot_number(Time now) {
  return std::max<std::int64_t>(now.time_since_epoch() / std::chrono::seconds(10), 0);
}

std::size_t bucket_of(Duration sample, std::size_t buckets) {
  const auto scaled = static_cast<double>(sample.count()) / kLeast;
  if (scaled <= 1) return 0;
  const auto index = std::ceil(std::log(scaled) / std::log(kGrowth));
  return std::min(static_cast<std::size_t>(index), buckets - 1);
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
  auto& slot = slots_[static_cast<std::size_t>(number % kSlots)];
  if (slot.number != number) {
    slot = Slot();
    slot.number = number;
  }
  ++slot.count;
  ++slot.buckets[bucket_of(sample, kBuckets)];
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
