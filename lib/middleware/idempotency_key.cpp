#include <httpretry/middleware/builtin.hpp>

#include "lib/http/random_bytes.hpp"
#include "lib/http/text.hpp"

#include <array>

namespace httpretry {

std::string new_idempotency_key() {
  std::array<unsigned char, 16> bytes{};
  fill_random(bytes);
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0FU) | 0x40U);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3FU) | 0x80U);

  std::string key;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) key.push_back('-');
    append_hex(key, bytes[i]);
  }
  return key;
}

}  // namespace httpretry
