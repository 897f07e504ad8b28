// Pure functions for the texts of the input and the results: times, keys, hashes.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace httpretry::batch {

// Returns the milliseconds since 1970, rounded down.
[[nodiscard]] inline std::int64_t ms_of(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}

// Returns the idempotency key of a line, as 32 hexadecimal digits. `secret` is random and has 32
// digits. Each line and each secret has a different key. The same arguments give the same key, so
// it need not be stored.
std::string made_key(std::string_view secret, std::uint64_t line);

// Returns a URL as UTF-8, which JSON requires. Percent-encodes the other bytes, as a request does.
std::string utf8_url(std::string_view url);

namespace detail {

// Returns the hash of a sequence of lines, given the hash of all lines `before` this one (0: none).
// It detects changes by accident, not by an attacker.
HTTPRETRY_API std::uint64_t hash_line(std::uint64_t before, std::string_view line);

}  // namespace detail
using detail::hash_line;

}  // namespace httpretry::batch
