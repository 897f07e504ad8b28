#include "totals.hpp"

#include <mutex>

namespace httpretry::telemetry {
namespace {

// Adds the counts of a series to the total, and keeps the newer exemplar of each bucket.
void add_send(SendTotal& total, const SendSeries& series) {
  total.duration.add(series.duration);
  if (!series.exemplars) return;
  for (std::size_t i = 0; i < total.exemplars.size(); ++i) {
    const auto& exemplar = (*series.exemplars)[i];
    if (exemplar.at > total.exemplars[i].at) total.exemplars[i] = exemplar;
  }
}

}  // namespace

Totals::Totals(const Metrics::State& state) {
  const std::lock_guard lock(state.mutex);
  for (const auto& shard : state.shards) add(*shard);
}

// Adds the counts of one thread, its shard, to the totals. A series is a count for one combination
// of labels, which its key packs into a number; series of different threads with the same key are
// added up. The thread continues to count in the meantime.
void Totals::add(Shard& shard) {
  // Keeps the thread from adding series, but not from counting.
  const std::lock_guard lock(shard.mutex);
  for (const auto& series : shard.sends.all()) add_send(sends[series.key], series);
  for (const auto& series : shard.calls.all()) {
    calls[series.key].duration.add(series.duration);
    calls[series.key].attempts.add(series.attempts);
  }
  for (const auto& series : shard.retries.all()) retries[series.key] += read(series.count);
  for (const auto& series : shard.refused_retries.all()) {
    refused_retries[series.key] += read(series.count);
  }
  for (const auto& series : shard.fallbacks.all()) fallbacks[series.key] += read(series.count);
  for (const auto& series : shard.hedges.all()) hedges[series.key] += read(series.count);
  for (std::size_t i = 0; i < shed.size(); ++i) shed.at(i) += read(shard.shed.at(i));  // by reason
  for (const auto& host : shard.hosts) {
    // Reads `ended` first. Otherwise a request that begins and ends in between would make the
    // difference too small.
    const auto ended = read(host.ended);
    in_flight[host.index] +=
        static_cast<std::int64_t>(read(host.started)) - static_cast<std::int64_t>(ended);
  }
  wire_sends += read(shard.wire_sends);
  wait += read(shard.wait);  // before retries, in nanoseconds
  // The waits before sends, by the limit that caused them.
  for (std::size_t i = 0; i < queued.size(); ++i) queued.at(i).add(shard.queued.at(i));
}

}  // namespace httpretry::telemetry
