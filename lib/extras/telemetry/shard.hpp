// A shard holds the counts of one thread. Only that thread, its owner, writes them, so an addition
// needs no atomic read-modify-write. Readers may see slightly old values.
#pragma once

#include "names.hpp"

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/http/result.hpp>
#include <httpretry/http/url.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace httpretry::telemetry {

using Cell = std::atomic<std::uint64_t>;

inline void add(Cell& cell, std::uint64_t by = 1) {
  cell.store(cell.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}
inline std::uint64_t read(const Cell& cell) { return cell.load(std::memory_order_relaxed); }

// The bounds of the semantic conventions, in nanoseconds.
inline constexpr std::array<std::int64_t, 14> kDurationBounds{
    5'000'000,     10'000'000,    25'000'000,    50'000'000,    75'000'000,
    100'000'000,   250'000'000,   500'000'000,   750'000'000,   1'000'000'000,
    2'500'000'000, 5'000'000'000, 7'500'000'000, 10'000'000'000};
inline constexpr std::array<std::int64_t, 6> kAttemptBounds{1, 2, 3, 4, 5, 10};

template <const auto& kBounds>
struct Histogram {
  std::array<Cell, kBounds.size() + 1> counts{};
  Cell sum{};

  // Returns the bucket of the value.
  std::size_t record(std::int64_t value) {
    std::size_t bucket = 0;
    while (bucket < kBounds.size() && value > kBounds[bucket]) ++bucket;
    add(counts[bucket]);
    add(sum, static_cast<std::uint64_t>(value));
    return bucket;
  }
};
using Durations = Histogram<kDurationBounds>;

// A send that fell into a bucket. The mutex of the shard guards it.
struct BucketExemplar {
  std::uint64_t trace_high = 0;
  std::uint64_t trace_low = 0;  // both 0: none
  std::uint64_t span = 0;
  std::int64_t nanoseconds = 0;
  WallTime at{};
};
using Exemplars = std::array<BucketExemplar, kDurationBounds.size() + 1>;

struct SendSeries {
  std::uint64_t key = 0;
  Durations duration;
  std::unique_ptr<Exemplars> exemplars;
};
struct CallSeries {
  std::uint64_t key = 0;
  Durations duration;
  Histogram<kAttemptBounds> attempts;
};
struct CountSeries {
  std::uint64_t key = 0;
  Cell count{};
};

// A hash table of series, with open addressing. The key of a series is its packed labels. The owner
// finds series without a lock. The mutex of the shard guards adding series, and reading by other
// threads.
template <class Series>
class Table {
 public:
  // Returns nullptr if there is no such series.
  [[nodiscard]] Series* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    for (auto at = home(key);; at = (at + 1) & (slots_.size() - 1)) {
      auto* series = slots_[at];
      if (series == nullptr || series->key == key) return series;
    }
  }

  Series& add(std::uint64_t key) {
    if ((all_.size() + 1) * 2 > slots_.size()) grow();
    auto& series = all_.emplace_back();
    series.key = key;
    put(series);
    return series;
  }

  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const std::deque<Series>& all() const { return all_; }

 private:
  [[nodiscard]] std::size_t home(std::uint64_t key) const {
    return (key * 0x9E3779B97F4A7C15U) >> 32U & (slots_.size() - 1);
  }
  void put(Series& series) {
    auto at = home(series.key);
    while (slots_[at] != nullptr) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = &series;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, nullptr);
    for (auto& series : all_) put(series);
  }

  std::vector<Series*> slots_;  // a power of two, at most half full
  std::deque<Series> all_;
};

struct HostCells {
  std::uint32_t index = 0;
  Cell started{};
  Cell ended{};
};

// An exchange in flight, so that its end need not look up the server.
struct OpenExchange {
  std::uint64_t call = 0;  // its id
  int number = 0;
  HostCells* host = nullptr;
};

// The reasons why guards refuse a send.
inline constexpr std::array<Errc, 4> kShedReasons{Errc::Paused, Errc::CircuitOpen,
                                                  Errc::RateLimited, Errc::QueueFull};
inline constexpr std::size_t kQueuedByCount = static_cast<std::size_t>(QueuedBy::SharedState) + 1;

struct Shard {
  std::mutex mutex;
  std::atomic<bool> owned = true;  // false: its thread has ended, and another one may take it

  Table<SendSeries> sends;
  Table<CallSeries> calls;
  Table<CountSeries> retries;  // endpoint, class, kind of rule
  Table<CountSeries> refused_retries;
  Table<CountSeries> fallbacks;
  Table<CountSeries> hedges;  // endpoint, HedgeResult
  std::array<Cell, kShedReasons.size()> shed{};
  Cell wire_sends{};
  Cell wait{};                                     // nanoseconds
  std::array<Durations, kQueuedByCount> queued{};  // by QueuedBy
  NameCache host_cache;
  std::deque<HostCells> hosts;

  // Only the owner uses the members below.
  std::string last_origin;
  HostCells* last_host = nullptr;
  std::unordered_map<std::uint32_t, HostCells*> host_cells;
  EndpointCache endpoint_cache;
  // The exchange that ended last. If a request has the same headers object as this exchange, it
  // also has the same URL: a request that shares its headers with another one copies them before a
  // change.
  std::uint64_t ended_call = 0;
  const Headers* ended_headers = nullptr;
  HostCells* ended_host = nullptr;
  // A cache of the latest exchanges. If two share a slot, the later one replaces the earlier one.
  std::array<OpenExchange, 256> open_exchanges{};
  OpenExchange& open_exchange(std::uint64_t call, int number) {
    return open_exchanges[(call + static_cast<std::uint64_t>(number)) % open_exchanges.size()];
  }
};

}  // namespace httpretry::telemetry
