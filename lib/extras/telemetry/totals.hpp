// Totals: the counts of all threads, added up for a snapshot of the metrics.
#pragma once

#include "metrics_state.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace httpretry::telemetry {

struct Total {
  std::vector<std::uint64_t> counts;
  std::uint64_t sum = 0;

  template <const auto& kBounds>
  void add(const Histogram<kBounds>& histogram) {
    counts.resize(histogram.counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += read(histogram.counts[i]);
    sum += read(histogram.sum);
  }
};

struct SendTotal {
  Total duration;
  Exemplars exemplars;
};
struct CallTotal {
  Total duration;
  Total attempts;
};

// The sums over all shards, by their packed labels.
struct Totals {
  explicit Totals(const Metrics::State& state);

  std::map<std::uint64_t, SendTotal> sends;
  std::map<std::uint64_t, CallTotal> calls;
  std::map<std::uint64_t, std::uint64_t> retries;
  std::map<std::uint64_t, std::uint64_t> refused_retries;
  std::map<std::uint64_t, std::uint64_t> fallbacks;
  std::map<std::uint64_t, std::uint64_t> hedges;
  std::array<std::uint64_t, kShedReasons.size()> shed{};
  std::map<std::uint32_t, std::int64_t> in_flight;
  std::uint64_t wire_sends = 0;
  std::uint64_t wait = 0;
  std::array<Total, kQueuedByCount> queued;

 private:
  void add(Shard& shard);
};

}  // namespace httpretry::telemetry
