#include "sketch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace httpretry::guard {
namespace {

constexpr double kLeast = 1e5;  // nanoseconds
constexpr double kError = 0.05;
constexpr double kGrowth = (1 + kError) / (1 - kError);

std::int64_t slot_number(Time now) {
  // Without a sign, a division is cheaper.
  constexpr std::uint64_t kLength = Duration(std::chrono::seconds(10)).count();
  const auto ns = std::max<std::int64_t>(now.time_since_epoch().count(), 0);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(ns) / kLength);
}

// A logarithm would cost more than all the rest of a sample.
struct Bounds {
  std::array<std::int64_t, kBuckets> most{};  // nanoseconds that a bucket takes
  std::array<std::uint8_t, 256> first{};      // bucket of the numbers that begin alike
};

// How a number that is 4 or more begins: its length, and the two bits after the first.
constexpr std::size_t beginning_of(std::uint64_t number) {
  const auto bits = static_cast<std::size_t>(std::bit_width(number));
  return bits * 4 + (number >> (bits - 3)) % 4;
}

constexpr Bounds make_bounds() {
  Bounds bounds;
  double most = kLeast;
  for (auto& each : bounds.most) {
    each = static_cast<std::int64_t>(most);
    most *= kGrowth;
  }
  std::size_t bucket = 0;
  for (std::int64_t bits = 2; bits < 63; ++bits) {
    for (std::int64_t next = 4; next < 8; ++next) {
      const auto least = next << (bits - 2);
      while (bucket + 1 < kBuckets && bounds.most[bucket] < least) ++bucket;
      bounds.first[beginning_of(static_cast<std::uint64_t>(least))] =
          static_cast<std::uint8_t>(bucket);
    }
  }
  return bounds;
}

constexpr auto kBounds = make_bounds();

std::size_t bucket_of(Duration sample) {
  const auto ns = std::max<std::int64_t>(sample.count(), 4);
  std::size_t bucket = kBounds.first[beginning_of(static_cast<std::uint64_t>(ns))];
  while (bucket + 1 < kBuckets && kBounds.most[bucket] < ns) ++bucket;
  return bucket;
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
