// UTF-8, as RFC 3629 has it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace httpretry {

// The length of the UTF-8 character at the front; 0 where it is none: surrogates and
// overlong forms are none.
inline std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const auto length = first < 0xE0 ? 2U : first < 0xF0 ? 3U : 4U;
  const auto least = first == 0xE0 ? 0xA0U : first == 0xF0 ? 0x90U : 0x80U;
  const auto most = first == 0xED ? 0x9FU : first == 0xF4 ? 0x8FU : 0xBFU;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

inline void append_utf8(std::string& out, unsigned code) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12), tail(6), tail(0);
  }
}

}  // namespace httpretry
