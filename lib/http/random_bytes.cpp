#include "random_bytes.hpp"

#include "text.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace httpretry {

void fill_random(std::span<unsigned char> bytes) {
  if (::getentropy(bytes.data(), bytes.size()) == 0) return;
  throw std::system_error(errno, std::generic_category(), "getrandom");
}

std::string random_hex(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  fill_random(bytes);
  std::string text;
  for (const auto byte : bytes) append_hex(text, byte);
  return text;
}

}  // namespace httpretry
