// SipHash-2-4, a keyed hash. Texts with equal hashes cannot be found without the key. The result is
// the same on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace httpretry {

std::uint64_t keyed_hash(std::uint64_t key, std::uint64_t second_key, std::string_view text);
inline std::uint64_t keyed_hash(std::uint64_t key, std::string_view text) {
  return keyed_hash(key, ~key, text);
}

}  // namespace httpretry
