#include "text.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace httpretry::batch {
namespace {

// Mixes the bits. Different values have different results.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

void append_hex64(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    append_hex(out, static_cast<unsigned char>(value >> static_cast<unsigned>(shift)));
  }
}

}  // namespace

// Mixes the line's number with each half of the secret. Within a half, different lines have
// different results, because mix() is reversible.
std::string made_key(std::string_view secret, std::uint64_t line) {
  const auto half = [&](std::size_t offset) {
    constexpr std::size_t kDigits = 16;
    return to_number<std::uint64_t>(secret.substr(offset, kDigits), /*base=*/16).value_or(0);
  };
  std::string key;
  append_hex64(key, mix(half(0) ^ line));
  append_hex64(key, mix(half(16) + line));
  return key;
}

std::string utf8_url(std::string_view url) {
  std::string text;
  while (!url.empty()) {
    const auto length = character_length(url);  // 0: its first byte is not UTF-8
    if (length == 0) {
      append_hex(text += '%', static_cast<unsigned char>(url.front()));
    } else {
      text += url.substr(0, length);
    }
    url.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

// Hashes eight bytes at a time, and then the rest. The length of the line is part of the hash, so
// the boundaries between lines matter.
std::uint64_t detail::hash_line(std::uint64_t before, std::string_view line) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;
  std::uint64_t hash = mix(before ^ line.size()) * kFactor;
  for (; line.size() >= 8; line.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, line.data(), 8);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32U;
  }
  std::uint64_t rest = 0;
  if (!line.empty()) std::memcpy(&rest, line.data(), line.size());
  return mix(hash ^ rest);
}

}  // namespace httpretry::batch
