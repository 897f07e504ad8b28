#include "encoding.hpp"

#include "text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace httpretry {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The six bits that each character of base64 stands for, or -1 for all other characters.
constexpr auto kSextets = [] {
  std::array<std::int8_t, 256> sextets{};
  sextets.fill(-1);
  for (std::size_t i = 0; i < kBase64.size(); ++i) {
    sextets[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
  }
  return sextets;
}();

}  // namespace

// Returns the bytes that a base64 text stands for, or nullopt if the text is not base64. Each
// character stands for six bits, except the "=" or "==" that must pad the last group to four
// characters. Ignores the bits behind the last whole byte, which should be 0.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto padding_begin = std::min(text.find('='), text.size());
  const auto padding = text.substr(padding_begin);
  if (!padding.empty() && padding != "=" && padding != "==") return std::nullopt;
  text = text.substr(0, padding_begin);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  unsigned pending = 0;       // only its lowest `pending_bits` bits are not in `bytes` yet
  unsigned pending_bits = 0;  // less than 8 after each character
  for (const char c : text) {
    const auto sextet = kSextets[static_cast<unsigned char>(c)];  // the six bits, or -1
    if (sextet < 0) return std::nullopt;                          // no character of base64
    pending = (pending << 6U) | static_cast<unsigned>(sextet);
    pending_bits += 6;
    if (pending_bits < 8) continue;
    pending_bits -= 8;
    bytes += static_cast<char>((pending >> pending_bits) & 0xFFU);
  }
  return bytes;
}

// Returns the bytes as base64: four characters, of six bits each, for three bytes. If the last
// group has only one or two bytes, "==" or "=" stands for the bytes that it lacks.
std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte_or_zero = [&](std::size_t index) {
      return index < bytes.size() ? static_cast<unsigned char>(bytes[index]) : 0U;
    };
    const unsigned triple =
        (byte_or_zero(i) << 16U) | (byte_or_zero(i + 1) << 8U) | byte_or_zero(i + 2);
    text += kBase64[triple >> 18U];
    text += kBase64[(triple >> 12U) & 63U];
    text += i + 1 < bytes.size() ? kBase64[(triple >> 6U) & 63U] : '=';
    text += i + 2 < bytes.size() ? kBase64[triple & 63U] : '=';
  }
  return text;
}

// Skips runs of ASCII characters, which most texts consist of, without decoding them.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t ascii = 0;  // the number of ASCII characters at the front
    while (ascii < text.size() && static_cast<unsigned char>(text[ascii]) < 0x80) ++ascii;
    text.remove_prefix(ascii);
    if (text.empty()) return true;
    const auto length = character_length(text);
    if (length == 0) return false;  // not a character
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace httpretry
