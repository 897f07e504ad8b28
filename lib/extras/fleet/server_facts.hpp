// ServerFacts: what a Redis server says of itself (INFO), and what is wrong with it for us.
#pragma once

#include <httpretry/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::fleet {

struct ServerFacts {
  std::string version;
  int major = 0;  // of its version; 0: it does not say
  int minor = 0;
  std::uint64_t max_memory = 0;  // 0: it takes what it needs
  std::string eviction;          // maxmemory-policy
  std::optional<bool> appends;   // appendonly: each write goes to a file
};

[[nodiscard]] HTTPRETRY_API ServerFacts read_info(std::string_view info);

// What is needed of a server: XAUTOCLAIM, ZADD GT.
inline constexpr int kLeastMajor = 6;
inline constexpr int kLeastMinor = 2;
[[nodiscard]] HTTPRETRY_API bool too_old(const ServerFacts& facts);
// "Redis 5.0 is older than 6.2"
[[nodiscard]] HTTPRETRY_API std::string age_problem(const ServerFacts& facts);
[[nodiscard]] HTTPRETRY_API bool evicts(const ServerFacts& facts);

// Each says what to do. Limits work with all but a server that is too old.
[[nodiscard]] std::vector<std::string> problems_for_limits(const ServerFacts& facts);

}  // namespace httpretry::fleet
