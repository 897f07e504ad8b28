#include "lib/batch/text.hpp"

#include "lib/http/text.hpp"

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

// Takes a number of exactly so many digits off the front.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count ||
      !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count), is_digit)) {
    return std::nullopt;
  }
  const auto number = to_number<int>(text.substr(0, count));
  text.remove_prefix(count);
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int> take_number(std::string_view& text, std::size_t digits, char before, int least,
                               int most) {
  if (before != '\0' && !take(text, before)) return std::nullopt;
  const auto number = take_digits(text, digits);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

std::optional<Duration> take_fraction(std::string_view& text) {
  if (!take(text, '.')) return Duration{};
  Duration fraction{};
  Duration digit_is = std::chrono::milliseconds(100);
  const auto size = text.size();
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), digit_is /= 10) {
    fraction += (text.front() - '0') * digit_is;
  }
  return text.size() < size ? std::optional(fraction) : std::nullopt;
}

std::optional<Duration> take_offset(std::string_view& text) {
  if (take(text, 'Z') || take(text, 'z')) return Duration{};
  const bool behind = !text.empty() && text.front() == '-';
  if (!behind && (text.empty() || text.front() != '+')) return std::nullopt;
  text.remove_prefix(1);
  const auto hours = take_number(text, 2, '\0', 0, 23);
  const auto minutes = hours ? take_number(text, 2, ':', 0, 59) : std::nullopt;
  if (!minutes) return std::nullopt;
  const Duration offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return behind ? -offset : offset;
}

// Each value has another result.
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
  const auto year_of = take_number(text, 4, '\0', 1970, 2199);
  const auto month_of = year_of ? take_number(text, 2, '-', 1, 12) : std::nullopt;
  const auto day_of = month_of ? take_number(text, 2, '-', 1, 31) : std::nullopt;
  if (!day_of || (!take(text, 'T') && !take(text, 't') && !take(text, ' '))) return std::nullopt;
  const auto hour = take_number(text, 2, '\0', 0, 23);
  const auto minute = hour ? take_number(text, 2, ':', 0, 59) : std::nullopt;
  const auto second = minute ? take_number(text, 2, ':', 0, 60) : std::nullopt;
  const auto fraction = second ? take_fraction(text) : std::nullopt;
  const auto offset = fraction ? take_offset(text) : std::nullopt;
  const year_month_day date = year(year_of.value_or(0)) / month_of.value_or(0) / day_of.value_or(0);
  if (!offset || !text.empty() || !date.ok()) return std::nullopt;
  return WallTime(sys_days(date)) + hours(*hour) + minutes(*minute) + seconds(*second) + *fraction -
         *offset;
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
