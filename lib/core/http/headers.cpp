#include <httpretry/http/headers.hpp>

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace httpretry {
namespace {

// Enough for the headers of a typical request or response.
constexpr std::size_t kFirstBytes = 250;
constexpr std::size_t kFirstHeaders = 6;

// tchar of RFC 9110 §5.6.2.
constexpr std::array<bool, 256> kTokenBytes = [] {
  std::array<bool, 256> table{};
  for (char c = 0; c < 127; ++c) {
    const bool mark = std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    table[static_cast<std::size_t>(c)] = is_letter(c) || is_digit(c) || mark;
  }
  return table;
}();

// Returns whether one of eight bytes is below 0x20 or is 0x7F. Tests all eight at once: a
// subtraction sets the top bit of each byte that is too small.
bool has_control_byte(const char* eight) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, eight, sizeof bytes);
  const std::uint64_t no_delete = bytes ^ (kOnes * 0x7F);
  const std::uint64_t below_space = (bytes - kOnes * 0x20) & ~bytes;
  const std::uint64_t is_delete = (no_delete - kOnes) & ~no_delete;
  return ((below_space | is_delete) & (kOnes * 0x80)) != 0;
}

std::string_view without_ending(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void demand_valid(std::string_view name, std::string_view value) {
  if (!valid_header_name(name)) {
    throw std::invalid_argument(
        "a header name may contain only letters, digits and !#$%&'*+-.^_`|~");
  }
  if (!valid_header_value(value)) {
    throw std::invalid_argument("the value of header " + std::string(name) +
                                " contains a control byte (CR, LF, NUL or another)");
  }
}

// Terminals interpret control characters: C0, DEL, and C1, which UTF-8 encodes as C2 80 to C2 9F.
bool is_control_character(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return is_control(character.front());
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return x == y || to_lower(x) == to_lower(y);
         });
}

bool valid_header_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return kTokenBytes[static_cast<unsigned char>(c)];
  });
}

// Returns whether a value has no control byte except tabs. Skips blocks of eight bytes without any
// control byte, and then looks at the bytes that are left.
bool valid_header_value(std::string_view value) {
  while (value.size() >= 8 && !has_control_byte(value.data())) {
    if (value.size() == 8) return true;
    // The last block also has eight bytes, so it may overlap the one before.
    value.remove_prefix(std::min<std::size_t>(8, value.size() - 8));
  }
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7F;
  });
}

Headers::Headers(std::initializer_list<Field> fields) {
  for (const auto& field : fields) add(field.name, field.value);
}

void Headers::add(std::string_view name, std::string_view value) {
  demand_valid(name, value);
  append(name, trimmed(value));
}

bool Headers::try_add(std::string_view name, std::string_view value) {
  if (!valid_header_name(name) || !valid_header_value(value)) return false;
  append(name, trimmed(value));
  return true;
}

// Appends a received header. Returns false if the line is not a valid header.
bool Headers::try_add_line(std::string_view line) {
  std::size_t colon = 0;  // the search for the end of the name also checks the name
  while (colon < line.size() && kTokenBytes[static_cast<unsigned char>(line[colon])]) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':') return false;
  line = without_ending(line);
  const auto name = line.substr(0, colon);
  const auto value = trimmed(line.substr(colon + 1));
  if (!valid_header_value(value)) return false;
  append(name, value);
  return true;
}

// Appends a continuation line to the value of the last header: after "X-Text: first", the line
// "  second" makes the value "first second". There must be a header. If the line has control bytes,
// the value is not usable, so this removes the header and returns false. `text_` has all headers
// one after the other, each as "NAME: VALUE" with a NUL byte at its end.
bool Headers::try_continue(std::string_view line) {
  const auto continuation = trimmed(without_ending(line));
  if (!valid_header_value(continuation)) {
    remove_last();
    return false;
  }
  if (continuation.empty()) return true;
  auto& last = entries_.back();
  if (last.value_size == 0) {  // stored as "NAME;", not "NAME: VALUE", so it is stored anew
    const std::string name((*this)[size() - 1].name);
    remove_last();
    append(name, continuation);
    return true;
  }
  text_.back() = ' ';  // replaces the NUL byte of the last header
  text_.append(continuation).push_back('\0');
  last.value_size += static_cast<std::uint32_t>(1 + continuation.size());
  return true;
}

void Headers::remove_last() {
  text_.resize(entries_.back().offset);
  entries_.pop_back();
}

// Appends a header to `text_`, which has all headers one after the other as C strings for libcurl,
// and adds an entry with its offset and sizes. The name and the value must be valid, and may be
// parts of `text_`. Throws std::length_error if an offset would not fit into 32 bits.
void Headers::append(std::string_view name, std::string_view value) {
  // libcurl sends a header without a value only if its line is "Name;".
  const auto separator = value.empty() ? std::string_view(";") : std::string_view(": ");
  const auto offset = text_.size();
  const auto needed = offset + name.size() + separator.size() + value.size() + 1;
  if (needed > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("the headers of one message take more than 4 GiB");
  }
  // The first allocation, of kFirstHeaders and kFirstBytes, suffices for most messages.
  if (size() == entries_.capacity()) entries_.reserve(std::max(kFirstHeaders, 2 * size()));
  // If `text_` must grow, its bytes stay where they are until `name` and `value`, which may be
  // parts of them, are copied.
  const bool grows = needed > text_.capacity();
  std::string larger_text;
  if (grows) {
    larger_text.reserve(std::max({kFirstBytes, needed, 2 * offset}));
    larger_text = text_;
  }
  constexpr std::string_view kEnd("\0", 1);
  (grows ? larger_text : text_).append(name).append(separator).append(value).append(kEnd);
  if (grows) text_ = std::move(larger_text);
  entries_.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(name.size()),
                      static_cast<std::uint32_t>(value.size())});
}

void Headers::set(std::string_view name, std::string_view value) {
  demand_valid(name, value);
  if (!contains(name)) return append(name, trimmed(value));
  const auto new_value = trimmed(value);
  replace(name, &new_value);
}

std::size_t Headers::remove(std::string_view name) {
  return contains(name) ? replace(name, /*value=*/nullptr) : 0;
}

// Replaces all headers with this name by one with this value, or removes them if `value` is
// nullptr. Returns how many there were.
std::size_t Headers::replace(std::string_view name, const std::string_view* value) {
  Headers changed;
  changed.reserve(size(), text_.size() + (value == nullptr ? 0 : value->size()));
  std::size_t replaced = 0;
  for (const auto field : *this) {
    if (!equal_ignoring_case(field.name, name)) {
      changed.append(field.name, field.value);
    } else {
      if (replaced == 0 && value != nullptr) changed.append(name, *value);
      ++replaced;
    }
  }
  *this = std::move(changed);
  return replaced;
}

void Headers::clear() {
  text_.clear();
  entries_.clear();
}

void Headers::reserve(std::size_t fields, std::size_t bytes) {
  entries_.reserve(fields);
  text_.reserve(bytes);
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const auto field : *this) {
    if (equal_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Headers::get_all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto field : *this) {
    if (equal_ignoring_case(field.name, name)) values.push_back(field.value);
  }
  return values;
}

const char* Headers::line(std::size_t index) const { return text_.data() + entries_[index].offset; }

bool operator==(const Headers& a, const Headers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return equal_ignoring_case(x.name, y.name) && x.value == y.value;
  });
}

// Returns the text with each byte of a control character, and each byte that is not UTF-8, as
// "\xNN".
std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const auto length = character_length(text);  // 0 if the first byte is not UTF-8
    const auto character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control_character(character)) {
      safe += character;
    } else {
      for (const char c : character) append_hex(safe += "\\x", static_cast<unsigned char>(c));
    }
    text.remove_prefix(character.size());
  }
  return safe;
}

}  // namespace httpretry
