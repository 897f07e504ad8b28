#include "utf8.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>

namespace httpretry {
namespace {

// Those of C0, C1 and DEL: terminals obey them.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

void append_escaped(std::string& text, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  text.append("\\x").append({kDigits[byte >> 4U], kDigits[byte & 0xFU]});
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const auto length = character_length(text);
    const auto character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control(character)) {
      safe += character;
    } else {
      for (const char c : character) append_escaped(safe, c);
    }
    text.remove_prefix(character.size());
  }
  return safe;
}

}  // namespace httpretry
