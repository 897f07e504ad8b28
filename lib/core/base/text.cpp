#include "text.hpp"

#include <algorithm>
#include <array>

namespace httpretry {

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = to_lower(c);
  return lower;
}

void append_hex(std::string& out, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 0xFU];
}

std::string_view take_until(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::string text_of(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "something that is not a std::exception";
  }
}

// Returns the length, in bytes, of the UTF-8 character at the front of a nonempty text, or 0 if no
// valid character is there.
std::size_t character_length(std::string_view text) {
  // After the end of the text, returns 0, which is valid in no place below.
  const auto byte_at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto first = byte_at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;  // no character begins with these bytes
  const auto length = first < 0xE0 ? 2U : first < 0xF0 ? 3U : 4U;
  // RFC 3629 §4: the second byte excludes overlong forms, surrogates and values above 0x10FFFF.
  const auto second_min = first == 0xE0 ? 0xA0U : first == 0xF0 ? 0x90U : 0x80U;
  const auto second_max = first == 0xED ? 0x9FU : first == 0xF4 ? 0x8FU : 0xBFU;
  if (byte_at(1) < second_min || byte_at(1) > second_max) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(i) & 0xC0U) != 0x80U) return 0;  // not 10xxxxxx, a continuation byte
  }
  return length;
}

}  // namespace httpretry
