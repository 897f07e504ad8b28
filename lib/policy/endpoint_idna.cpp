#include "endpoint_host.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace httpretry::policy {
namespace {

// libcurl makes names ASCII too, but only where the program's locale is UTF-8; a policy file must
// not mean different things in different locales.

// Of a character, by its first byte; 0: none begins so.
std::size_t utf8_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first >= 0xF5) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

std::optional<char32_t> take_utf8(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const auto length = utf8_length(first);
  if (length == 0 || text.size() < length) return std::nullopt;
  char32_t point = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    point = point << 6 | (byte & 0x3F);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (overlong || surrogate || point > 0x10FFFF) return std::nullopt;
  text.remove_prefix(length);
  return point;
}

// Every `step`th character from first to last is upper case; its lower case is `shift` further.
struct UpperCase {
  char32_t first;
  char32_t last;
  int step;
  int shift;
};
constexpr UpperCase kUpperCase[] = {
    // Latin
    {0xC0, 0xD6, 1, 32},
    {0xD8, 0xDE, 1, 32},
    {0x100, 0x12E, 2, 1},
    {0x134, 0x136, 2, 1},
    {0x139, 0x147, 2, 1},
    {0x14A, 0x176, 2, 1},
    {0x178, 0x178, 1, -121},
    {0x179, 0x17D, 2, 1},
    {0x1A0, 0x1A4, 2, 1},
    {0x1AF, 0x1AF, 1, 1},
    {0x1CD, 0x1DB, 2, 1},
    {0x1DE, 0x1EE, 2, 1},
    {0x1F8, 0x21E, 2, 1},
    {0x222, 0x232, 2, 1},
    {0x1E00, 0x1E94, 2, 1},
    {0x1EA0, 0x1EFE, 2, 1},
    // Greek
    {0x386, 0x386, 1, 38},
    {0x388, 0x38A, 1, 37},
    {0x38C, 0x38C, 1, 64},
    {0x38E, 0x38F, 1, 63},
    {0x391, 0x3A1, 1, 32},
    {0x3A3, 0x3AB, 1, 32},
    // Cyrillic
    {0x400, 0x40F, 1, 80},
    {0x410, 0x42F, 1, 32},
    {0x460, 0x480, 2, 1},
    {0x48A, 0x4BE, 2, 1},
    {0x4C1, 0x4CD, 2, 1},
    {0x4D0, 0x52E, 2, 1},
    // Armenian
    {0x531, 0x556, 1, 48},
};

char32_t lower_ascii(char32_t point) { return point >= 'A' && point <= 'Z' ? point + 32 : point; }

char32_t mapped(char32_t point) {
  if (point < 0x80) return lower_ascii(point);
  if (point == 0x3002 || point == 0xFF61) return '.';  // ideographic full stops
  if (point >= 0xFF01 && point <= 0xFF5E) return lower_ascii(point - 0xFEE0);  // full width
  for (const auto& range : kUpperCase) {
    if (point < range.first || point > range.last) continue;
    if ((point - range.first) % static_cast<char32_t>(range.step) != 0) continue;
    return static_cast<char32_t>(static_cast<std::int32_t>(point) + range.shift);
  }
  return point;
}

// RFC 3492 section 6.1, with the parameters of section 5.
std::uint32_t adapted(std::uint32_t delta, std::uint32_t points, bool first) {
  delta /= first ? 700 : 2;
  delta += delta / points;
  std::uint32_t k = 0;
  for (; delta > 35 * 26 / 2; k += 36) delta /= 35;
  return k + 36 * delta / (delta + 38);
}

void append_integer(std::string& out, std::uint32_t value, std::uint32_t bias) {
  static constexpr std::string_view kDigits = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (std::uint32_t k = 36;; k += 36) {
    const std::uint32_t threshold = k <= bias ? 1 : std::min<std::uint32_t>(k - bias, 26);
    if (value < threshold) break;
    out.push_back(kDigits[threshold + (value - threshold) % (36 - threshold)]);
    value = (value - threshold) / (36 - threshold);
  }
  out.push_back(kDigits[value]);
}

// RFC 3492 section 6.3. A label has 63 bytes at most in the end, so that a longer one may come out
// as anything too long: the sums below cannot overflow.
std::string punycode(std::u32string_view label) {
  std::string out("xn--");
  for (const auto point : label) {
    if (point < 0x80) out.push_back(static_cast<char>(point));
  }
  const auto basic = static_cast<std::uint32_t>(out.size() - 4);
  if (basic > 0) out.push_back('-');
  char32_t next = 0x80;
  std::uint32_t delta = 0;
  std::uint32_t bias = 72;
  for (auto handled = basic; handled < label.size(); ++next, ++delta) {
    char32_t smallest = std::numeric_limits<char32_t>::max();
    for (const auto point : label) {
      if (point >= next) smallest = std::min(smallest, point);
    }
    delta += static_cast<std::uint32_t>(smallest - next) * (handled + 1);
    next = smallest;
    for (const auto point : label) {
      if (point < next) ++delta;
      if (point != next) continue;
      append_integer(out, delta, bias);
      bias = adapted(delta, handled + 1, handled == basic);
      delta = 0;
      ++handled;
    }
  }
  return out;
}

void append_label(std::string& out, std::u32string_view label) {
  const auto plain = [](char32_t point) { return point < 0x80; };
  if (std::all_of(label.begin(), label.end(), plain)) {
    for (const auto point : label) out.push_back(static_cast<char>(point));
  } else {
    // More than a label's bytes can hold: as long as it is wrong, and no work.
    out += label.size() > 63 ? std::string(label.size(), 'x') : punycode(label);
  }
}

}  // namespace

std::optional<std::string> ascii_host(std::string_view text) {
  std::string host;
  std::u32string label;
  while (!text.empty()) {
    const auto point = take_utf8(text);
    if (!point) return std::nullopt;
    const auto lower = mapped(*point);
    if (lower != '.') {
      label.push_back(lower);
      continue;
    }
    append_label(host, label);
    host.push_back('.');
    label.clear();
  }
  append_label(host, label);
  return host;
}

}  // namespace httpretry::policy
