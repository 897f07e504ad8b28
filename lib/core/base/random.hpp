// Unpredictable random bytes, and random numbers.
#pragma once

#include "text.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <random>
#include <system_error>

namespace httpretry {

// Throws std::system_error if the system has no random numbers.
inline std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) == 0) return bits;
  throw std::system_error(errno, std::generic_category(), "getentropy");
}

// Returns `count` random bytes as two hexadecimal digits each.
inline std::string random_hex(std::size_t count) {
  std::string text;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i, bits >>= 8U) {
    if (i % sizeof bits == 0) bits = random_bits();
    append_hex(text, static_cast<unsigned char>(bits));
  }
  return text;
}

// Returns a number uniformly distributed in [0, 1), from this thread's generator, which the system
// seeds. The default for ClientOptions::random.
inline double random_number() {
  thread_local std::mt19937_64 generator(random_bits());
  return static_cast<double>(generator() >> 11U) * 0x1.0p-53;
}

}  // namespace httpretry
