// Small text functions that several modules need. They are ASCII-only and ignore the locale. The
// public ones (equal_ignoring_case, printable, ...) are in headers.hpp.
#pragma once

#include <charconv>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
[[nodiscard]] std::string to_lower(std::string_view text);

// Returns the value of a hexadecimal digit, or nullopt for any other character.
constexpr std::optional<unsigned> hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  const char lower = to_lower(c);
  if (lower < 'a' || lower > 'f') return std::nullopt;
  return static_cast<unsigned>(lower - 'a') + 10;
}
// Appends the byte as two lowercase hexadecimal digits.
void append_hex(std::string& out, unsigned char byte);

// Returns the text without the spaces and tabs at both ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Removes `c` from the front of `text`. Returns false if it is not there.
constexpr bool take(std::string_view& text, char c) {
  const bool found = text.starts_with(c);
  if (found) text.remove_prefix(1);
  return found;
}
// Removes the part before the first `separator`, and the separator, from the front of `text`.
// Returns that part: all of `text` if there is no separator.
std::string_view take_until(std::string_view& text, char separator);

// Parses all of `text` as a number. Returns nullopt if it is not a number or does not fit.
template <class Number>
[[nodiscard]] std::optional<Number> to_number(std::string_view text, int base = 10) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, number, base);
  if (failure != std::errc() || stopped != end) return std::nullopt;
  return number;
}

// Returns the word for an enumerator. `words` has the order of the enumerators, and `last` is the
// last enumerator.
template <auto last, std::size_t count>
std::string_view enum_word(decltype(last) value, const std::string_view (&words)[count]) {
  static_assert(count == static_cast<std::size_t>(last) + 1);
  const auto index = static_cast<std::size_t>(value);
  return index < count ? words[index] : "?";
}

// The hash for a map with text keys. With std::equal_to<> the map is searched without making a
// string.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};

// Returns the shortest text that reads back as the same number.
[[nodiscard]] std::string text_of(double number);

// Returns the text of an exception.
[[nodiscard]] std::string text_of(const std::exception_ptr& thrown);

// Returns the length of the UTF-8 character (RFC 3629) at the front of a nonempty text, or 0 if it
// is not valid. Surrogates and overlong forms are not valid.
[[nodiscard]] std::size_t character_length(std::string_view text);

}  // namespace httpretry
