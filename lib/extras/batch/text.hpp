// Texts of the input and the results: dates, base64, keys, hashes. Pure functions.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::batch {

// Milliseconds since 1970, rounded down.
[[nodiscard]] inline std::int64_t ms_of(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}

// "2026-11-21T05:04:48Z", also with a fraction and with an offset ("+02:00"); years 1970 to 2199.
std::optional<WallTime> parse_rfc3339(std::string_view text);

std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);
bool is_utf8(std::string_view text);

// The idempotency key of a line, in 32 hexadecimal digits: another one for each line, and for each
// `secret`, which is random and has 32 digits. So a key need not be stored to be the same again.
std::string made_key(std::string_view secret, std::uint64_t line);

// The hash of a sequence of lines, to recognize it again. Not against an attacker.
HTTPRETRY_API std::uint64_t hash_line(std::uint64_t before, std::string_view line);

}  // namespace httpretry::batch
