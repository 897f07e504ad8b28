// SipHash-2-4, a hash with a key. Without the key, nobody can find texts with equal hashes. The
// result is the same on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace httpretry {

std::uint64_t keyed_hash(std::uint64_t key, std::uint64_t second_key, std::string_view text);
inline std::uint64_t keyed_hash(std::uint64_t key, std::string_view text) {
  return keyed_hash(key, ~key, text);
}

}  // namespace httpretry
