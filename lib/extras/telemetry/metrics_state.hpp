// The state of a Metrics: a shard of counts for each thread, and the names that all threads share.
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
  // The value of a budget that no attempt has used yet.
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

  explicit State(MetricsOptions with);

  // Returns this thread's shard, or nullptr if nothing can be counted: the thread is ending, or
  // memory has run out.
  telemetry::Shard* shard();

  MetricsOptions options;
  WallTime since;
  telemetry::Names hosts;
  telemetry::Names endpoints;
  telemetry::GuardNumbers guards;
  // The budget that was last seen, by the number of a host and of an endpoint.
  std::vector<Gauge> budget_of_host;
  std::vector<Gauge> budget_of_endpoint;

  mutable std::mutex mutex;
  std::vector<std::shared_ptr<telemetry::Shard>> shards;

 private:
  telemetry::Shard* find_or_make_shard();
  telemetry::Shard* lease_shard();
  const std::uint64_t id_;  // unique in the process, even after this state is destroyed
};

namespace telemetry {

// The labels of a series of sends. They are packed into a number, which is the key in a Table.
struct SendKey {
  std::uint32_t host = 0;  // 24 bits
  std::uint8_t method = 0;
  std::uint8_t version = 0;  // 4 bits
  std::uint8_t error = 0;    // from packed_error; 0: none
  std::uint16_t status = 0;

  [[nodiscard]] std::uint64_t pack() const {
    return host | std::uint64_t{method} << 24U | std::uint64_t{version} << 32U |
           std::uint64_t{error} << 36U | std::uint64_t{status} << 44U;
  }
  static SendKey unpack(std::uint64_t key) {
    return {.host = static_cast<std::uint32_t>(key & 0xFFFFFFU),
            .method = static_cast<std::uint8_t>(key >> 24U),
            .version = static_cast<std::uint8_t>(key >> 32U & 0xFU),
            .error = static_cast<std::uint8_t>(key >> 36U),
            .status = static_cast<std::uint16_t>(key >> 44U)};
  }
  // Adds one, because the first Errc has the value 0.
  static std::uint8_t packed_error(Errc code) {
    return static_cast<std::uint8_t>(static_cast<int>(code) + 1);
  }
  // The error must not be 0.
  [[nodiscard]] Errc error_code() const { return static_cast<Errc>(error - 1); }
};
inline constexpr std::uint16_t kOtherStatus = 1;  // if there are too many series

inline constexpr std::array<std::string_view, 11> kMethods{"GET",   "POST",    "PUT",     "DELETE",
                                                           "HEAD",  "PATCH",   "OPTIONS", "QUERY",
                                                           "TRACE", "CONNECT", "_OTHER"};
inline constexpr std::array<std::string_view, 6> kVersions{"", "1.1", "2", "1.0", "3", "_other"};
// The first words of an attempt's rule; "other" stands for the program's own classifier.
inline constexpr std::array<std::string_view, 10> kRuleKinds{
    "status", "error_codes",         "pending",          "transport",           "error",
    "proxy",  "grpc-retry-pushback", "stale connection", "no middleware retry", "other"};

// The result of a hedge. A refused hedge has the value kFirstRefused plus its HedgeRefused.
enum HedgeResult : std::uint8_t { kHedgeWon, kHedgeLost, kFirstRefused };

// The key of a series of an endpoint: the number of the endpoint in the lower 32 bits, and above it
// up to two labels of 8 bits, such as a Class and a kind of rule.
inline std::uint64_t endpoint_key(std::uint32_t endpoint, std::uint8_t first_label = 0,
                                  std::uint8_t second_label = 0) {
  return endpoint | std::uint64_t{first_label} << 32U | std::uint64_t{second_label} << 40U;
}
inline std::uint8_t first_label(std::uint64_t key) { return key >> 32U & 0xFFU; }
inline std::uint8_t second_label(std::uint64_t key) { return key >> 40U & 0xFFU; }

}  // namespace telemetry
}  // namespace httpretry
