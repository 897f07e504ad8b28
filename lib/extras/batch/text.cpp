#include "text.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace httpretry::batch {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr auto kSextets = [] {
  std::array<std::int8_t, 256> sextets{};
  sextets.fill(-1);
  for (std::size_t i = 0; i < kBase64.size(); ++i) {
    sextets[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
  }
  return sextets;
}();

// Returns whether `text` matches `shape`, in which "d" stands for a digit, "s" for a sign, and "T"
// for a separator of date and time.
bool has_shape(std::string_view text, std::string_view shape) {
  return std::ranges::equal(text, shape, [](char c, char expected) {
    if (expected == 'd') return is_digit(c);
    if (expected == 'T') return c == 'T' || c == 't' || c == ' ';
    return expected == 's' ? c == '+' || c == '-' : c == expected;
  });
}

int number_at(std::string_view text, std::size_t at, std::size_t digits) {
  return to_number<int>(text.substr(at, digits)).value_or(0);
}

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

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  const auto begin = text.substr(0, kShape.size());
  if (!has_shape(begin, kShape)) return std::nullopt;
  text.remove_prefix(begin.size());
  Duration fraction{};
  if (text.starts_with('.')) {
    Duration digit_is = milliseconds(100);
    const auto end = std::min(text.find_first_not_of("0123456789", 1), text.size());
    if (end == 1) return std::nullopt;
    for (std::size_t i = 1; i < end; ++i, digit_is /= 10) fraction += (text[i] - '0') * digit_is;
    text.remove_prefix(end);
  }
  const bool utc = text == "Z" || text == "z";
  if (!utc && !has_shape(text, "sdd:dd")) return std::nullopt;
  const auto offset_hours = utc ? 0 : number_at(text, 1, 2);
  const auto offset_minutes = utc ? 0 : number_at(text, 4, 2);
  const auto year_number = number_at(begin, 0, 4);
  const auto day_number = static_cast<unsigned>(number_at(begin, 8, 2));
  const auto month_number = static_cast<unsigned>(number_at(begin, 5, 2));
  const auto date = year(year_number) / month(month_number) / day(day_number);
  const auto hour = number_at(begin, 11, 2);
  const auto minute = number_at(begin, 14, 2);
  const auto second = number_at(begin, 17, 2);
  const bool good = date.ok() && year_number >= 1970 && year_number < 2200 && hour < 24 &&
                    minute < 60 && second <= 60 && offset_hours < 24 && offset_minutes < 60;
  if (!good) return std::nullopt;
  const Duration offset = hours(offset_hours) + minutes(offset_minutes);
  return WallTime(sys_days(date)) + hours(hour) + minutes(minute) + seconds(second) + fraction -
         (text.front() == '-' ? -offset : offset);
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto end = text.find('=');
  const auto padding = end == std::string_view::npos ? 0 : text.size() - end;
  if (padding > 2 ||
      text.substr(text.size() - padding) != std::string_view("==").substr(0, padding)) {
    return std::nullopt;
  }
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  unsigned held = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const auto sextet = kSextets[static_cast<unsigned char>(c)];
    if (sextet < 0) return std::nullopt;
    held = (held << 6U) | static_cast<unsigned>(sextet);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>((held >> bits) & 0xFFU);
  }
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
    };
    const unsigned triple = (byte(i) << 16U) | (byte(i + 1) << 8U) | byte(i + 2);
    text += kBase64[triple >> 18U];
    text += kBase64[(triple >> 12U) & 63U];
    text += i + 1 < bytes.size() ? kBase64[(triple >> 6U) & 63U] : '=';
    text += i + 2 < bytes.size() ? kBase64[triple & 63U] : '=';
  }
  return text;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && static_cast<unsigned char>(text[plain]) < 0x80) ++plain;
    text.remove_prefix(plain);
    if (text.empty()) return true;
    const auto length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string made_key(std::string_view secret, std::uint64_t line) {
  const auto half = [&](std::size_t at) {
    return to_number<std::uint64_t>(secret.substr(at, 16), 16).value_or(0);
  };
  std::string key;
  append_hex64(key, mix(half(0) ^ line));
  append_hex64(key, mix(half(16) + line));
  return key;
}

std::uint64_t hash_line(std::uint64_t before, std::string_view line) {
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
