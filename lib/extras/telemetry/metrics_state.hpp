// All that a Metrics has counted: a shard for each thread, and the names that they share.
#pragma once

#include "guard_numbers.hpp"
#include "shard.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/telemetry/metrics.hpp>

#include <limits>
#include <map>

namespace httpretry {

struct Metrics::State {
  using Gauge = std::atomic<std::int64_t>;
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

  explicit State(MetricsOptions with);

  // Of this thread. nullptr where the thread is ending, and nothing can be counted.
  telemetry::Shard* shard();

  MetricsOptions options;
  WallTime since;
  telemetry::Names hosts;
  telemetry::Names endpoints;
  telemetry::GuardNumbers guards;
  // What was left when it was last told, by host and by endpoint.
  std::vector<Gauge> budget_of_host;
  std::vector<Gauge> budget_of_endpoint;

  mutable std::mutex mutex;
  std::vector<std::shared_ptr<telemetry::Shard>> shards;

 private:
  telemetry::Shard* new_shard();
  const std::uint64_t id_;  // never used again
};

namespace telemetry {

// The labels of a series, as the number that finds it.
struct SendKey {
  std::uint32_t host = 0;  // 24 bits
  std::uint8_t method = 0;
  std::uint8_t version = 0;  // 4 bits
  std::uint8_t error = 0;    // of Errc, and one more; 0: none
  std::uint16_t status = 0;

  [[nodiscard]] std::uint64_t packed() const {
    return host | std::uint64_t{method} << 24U | std::uint64_t{version} << 32U |
           std::uint64_t{error} << 36U | std::uint64_t{status} << 44U;
  }
  static SendKey unpacked(std::uint64_t key) {
    SendKey made;
    made.host = static_cast<std::uint32_t>(key & 0xFFFFFFU);
    made.method = static_cast<std::uint8_t>(key >> 24U);
    made.version = static_cast<std::uint8_t>(key >> 32U & 0xFU);
    made.error = static_cast<std::uint8_t>(key >> 36U);
    made.status = static_cast<std::uint16_t>(key >> 44U);
    return made;
  }
};
inline constexpr std::uint16_t kOtherStatus = 1;  // where there are too many series

inline constexpr std::array<std::string_view, 11> kMethods{"GET",   "POST",    "PUT",     "DELETE",
                                                           "HEAD",  "PATCH",   "OPTIONS", "QUERY",
                                                           "TRACE", "CONNECT", "_OTHER"};
inline constexpr std::array<std::string_view, 6> kVersions{"", "1.1", "2", "1.0", "3", "_other"};
// How the rule of an attempt begins; "other" is of the program's own function.
inline constexpr std::array<std::string_view, 10> kRuleKinds{
    "status", "error_codes",         "pending",          "transport",           "error",
    "proxy",  "grpc-retry-pushback", "stale connection", "no middleware retry", "other"};

// What became of a hedge; a refused one is kFirstRefused and its HedgeRefused.
enum HedgeResult : std::uint8_t { kHedgeWon, kHedgeLost, kFirstRefused };

// Two small numbers above that of an endpoint.
inline std::uint64_t endpoint_key(std::uint32_t endpoint, std::uint8_t one, std::uint8_t two = 0) {
  return endpoint | std::uint64_t{one} << 32U | std::uint64_t{two} << 40U;
}

}  // namespace telemetry
}  // namespace httpretry
