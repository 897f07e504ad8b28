#include "random_bytes.hpp"

#include "text.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace httpretry {

void fill_random(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    const auto count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category(), "getrandom");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::string random_hex(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  fill_random(bytes);
  std::string text;
  for (const auto byte : bytes) append_hex(text, byte);
  return text;
}

}  // namespace httpretry
