// Random bytes that nobody can predict, and random numbers.
#pragma once

#include "text.hpp"

#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <random>
#include <span>
#include <system_error>
#include <vector>

namespace httpretry {

// At most 256 bytes. Throws std::system_error if the system has none.
inline void fill_random(std::span<unsigned char> bytes) {
  if (::getentropy(bytes.data(), bytes.size()) == 0) return;
  throw std::system_error(errno, std::generic_category(), "getentropy");
}

inline std::uint64_t random_bits() {
  std::array<unsigned char, sizeof(std::uint64_t)> bytes{};
  fill_random(bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

// Two digits for each byte.
inline std::string random_hex(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  fill_random(bytes);
  std::string text;
  for (const auto byte : bytes) append_hex(text, byte);
  return text;
}

// Uniform in [0, 1), from a generator of this thread with a seed from the system. The default for
// ClientOptions::random.
inline double random_number() {
  thread_local std::mt19937_64 generator(random_bits());
  return static_cast<double>(generator() >> 11U) * 0x1.0p-53;
}

}  // namespace httpretry
