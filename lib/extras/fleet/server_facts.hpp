// ServerFacts: the version and settings that a Redis server reports with INFO, and the problems
// that they cause for shared limits and queues.
#pragma once

#include <httpretry/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::fleet::detail {

struct ServerFacts {
  std::string version;
  int major = 0;  // 0 if the version is unknown
  int minor = 0;
  std::uint64_t max_memory = 0;  // in bytes; 0: no limit
  std::string eviction;          // maxmemory-policy
  std::optional<bool> appends;   // appendonly: each write is logged to a file
};

// Parses the reply to INFO. Missing lines leave the defaults.
[[nodiscard]] HTTPRETRY_API ServerFacts read_info(std::string_view info);

// The oldest version that works. It introduced XAUTOCLAIM and ZADD GT.
inline constexpr int kLeastMajor = 6;
inline constexpr int kLeastMinor = 2;
[[nodiscard]] HTTPRETRY_API bool too_old(const ServerFacts& facts);
// Returns a message such as "Redis 5.0 is older than 6.2".
[[nodiscard]] std::string age_problem(const ServerFacts& facts);
// Returns whether the server drops keys when its memory is full.
[[nodiscard]] HTTPRETRY_API bool evicts(const ServerFacts& facts);

// Returns a warning for each setting that harms shared limits. Only a server that is too old cannot
// share them at all.
[[nodiscard]] std::vector<std::string> problems_for_limits(const ServerFacts& facts);

}  // namespace httpretry::fleet::detail
