#include <httpretry/http/headers.hpp>

#include "text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace httpretry {
namespace {

// Room for the headers of a usual request: two allocations for five headers instead of eight, and
// 64 bytes less.
constexpr std::size_t kFirstHeaders = 6;
constexpr std::size_t kFirstBytes = 250;

// tchar of RFC 9110 §5.6.2.
constexpr std::array<bool, 256> kTokenBytes = [] {
  std::array<bool, 256> table{};
  for (char c = 0; c < 127; ++c) {
    const bool mark = std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    table[static_cast<std::size_t>(c)] = is_letter(c) || is_digit(c) || mark;
  }
  return table;
}();

// Whether one of eight bytes is below 0x20, or is 0x7F. All eight are tested at once: a subtraction
// sets the top bit of each byte that is too small.
bool has_control_byte(const char* eight) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, eight, sizeof bytes);
  const std::uint64_t no_delete = bytes ^ (kOnes * 0x7F);
  const std::uint64_t below_space = (bytes - kOnes * 0x20) & ~bytes;
  const std::uint64_t is_delete = (no_delete - kOnes) & ~no_delete;
  return ((below_space | is_delete) & (kOnes * 0x80)) != 0;
}

void demand_valid(std::string_view name, std::string_view value) {
  if (!valid_header_name(name)) {
    throw std::invalid_argument("a header name must be letters, digits and !#$%&'*+-.^_`|~ only");
  }
  if (!valid_header_value(value)) {
    throw std::invalid_argument("the value of header " + std::string(name) +
                                " contains a control byte (CR, LF, NUL or another)");
  }
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

bool valid_header_value(std::string_view value) {
  while (value.size() >= 8 && !has_control_byte(value.data())) {
    if (value.size() == 8) return true;
    value.remove_prefix(std::min<std::size_t>(8, value.size() - 8));  // the last two may overlap
  }
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7F;
  });
}

bool tells_secret(std::string_view header_name) {
  const auto name = to_lower(header_name);
  constexpr std::array<std::string_view, 8> kWords{
      "authorization", "cookie", "key", "token", "secret", "password", "signature", "credential"};
  return std::ranges::any_of(kWords,
                             [&](auto word) { return name.find(word) != std::string::npos; });
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

bool Headers::try_add_line(std::string_view line) {
  std::size_t colon = 0;  // checks the name while searching for its end
  while (colon < line.size() && kTokenBytes[static_cast<unsigned char>(line[colon])]) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':') return false;
  if (line.back() == '\n') line.remove_suffix(1);
  if (line.back() == '\r') line.remove_suffix(1);
  const auto name = line.substr(0, colon);
  const auto value = trimmed(line.substr(colon + 1));
  if (!valid_header_value(value)) return false;
  const bool as_kept =
      !value.empty() && value.data() == line.data() + colon + 2 && line[colon + 1] == ' ';
  if (!as_kept) {
    append(name, value);
  } else {  // in most lines: copying them whole costs half as much
    const auto offset = block_.size();
    block_.append(line.data(), colon + 2 + value.size()).push_back('\0');
    add_entry(offset, name, value);
  }
  return true;
}

void Headers::add_entry(std::size_t offset, std::string_view name, std::string_view value) {
  entries_.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(name.size()),
                      static_cast<std::uint32_t>(value.size())});
}

bool Headers::holds(std::string_view text) const {
  const auto address = [](const char* byte) { return reinterpret_cast<std::uintptr_t>(byte); };
  // Unsigned: what is before the block is far behind its end.
  return address(text.data()) - address(block_.data()) < block_.size();
}

void Headers::append(std::string_view name, std::string_view value) {
  // Growing the block would invalidate views into it.
  if (holds(name) || holds(value)) return append(std::string(name), std::string(value));
  if (entries_.empty()) reserve(kFirstHeaders, kFirstBytes);
  const auto offset = block_.size();
  // One resize costs less than an append for each part.
  block_.resize(offset + name.size() + (value.empty() ? 2 : 3 + value.size()));
  char* line = std::copy(name.begin(), name.end(), block_.data() + offset);
  if (value.empty()) {
    *line = ';';
  } else {
    *line = ':';
    line[1] = ' ';
    std::copy(value.begin(), value.end(), line + 2);
  }
  add_entry(offset, name, value);
}

void Headers::set(std::string_view name, std::string_view value) {
  demand_valid(name, value);
  if (!contains(name)) return append(name, trimmed(value));
  const auto kept = trimmed(value);
  replace(name, &kept);
}

std::size_t Headers::remove(std::string_view name) {
  return contains(name) ? replace(name, nullptr) : 0;
}

std::size_t Headers::replace(std::string_view name, const std::string_view* value) {
  Headers changed;
  changed.reserve(size(), block_.size() + (value == nullptr ? 0 : value->size()));
  std::size_t found = 0;
  for (const auto field : *this) {
    if (!equal_ignoring_case(field.name, name)) {
      changed.append(field.name, field.value);
    } else if (found++ == 0 && value != nullptr) {
      changed.append(name, *value);
    }
  }
  *this = std::move(changed);
  return found;
}

void Headers::clear() {
  block_.clear();
  entries_.clear();
}

void Headers::reserve(std::size_t fields, std::size_t bytes) {
  entries_.reserve(fields);
  block_.reserve(bytes);
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry.name_size != name.size()) continue;
    if (equal_ignoring_case({block_.data() + entry.offset, entry.name_size}, name)) {
      return std::string_view(block_.data() + entry.offset + entry.name_size + 2, entry.value_size);
    }
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

const char* Headers::line(std::size_t index) const {
  return block_.data() + entries_[index].offset;
}

bool operator==(const Headers& a, const Headers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return equal_ignoring_case(x.name, y.name) && x.value == y.value;
  });
}

}  // namespace httpretry
