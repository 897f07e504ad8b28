// Sketch: the quantiles of the durations of the last 30 seconds, within 5 %. Its buckets grow by a
// constant factor, so a quantile of the same samples is the same everywhere.
#pragma once

#include <httpretry/http/time.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace httpretry::guard {

// From 0.1 ms to an hour.
inline constexpr std::size_t kBuckets = 175;

class Sketch {
 public:
  void add(Duration sample, Time now);
  [[nodiscard]] std::uint32_t count(Time now) const;
  // `q` from 0 to 1. Empty without a sample.
  [[nodiscard]] std::optional<Duration> quantile(double q, Time now) const;

 private:
  static constexpr std::int64_t kSlots = 3;  // of 10 s
  struct Slot {
    std::int64_t number = -1;
    std::uint32_t count = 0;
    std::array<std::uint32_t, kBuckets> buckets{};
  };
  [[nodiscard]] static bool counts(const Slot& slot, Time now);

  std::array<Slot, static_cast<std::size_t>(kSlots)> slots_{};
};

}  // namespace httpretry::guard
