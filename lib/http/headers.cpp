#include <httpretry/http/headers.hpp>

#include "text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

namespace httpretry {
namespace {

// Room for the headers of a usual request or response: one allocation for five headers instead of
// four.
constexpr std::size_t kFirstBytes = 6 * 12 + 250;

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

std::string_view without_ending(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
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
  line = without_ending(line);
  const auto name = line.substr(0, colon);
  const auto value = trimmed(line.substr(colon + 1));
  if (!valid_header_value(value)) return false;
  const bool as_kept =
      !value.empty() && value.data() == line.data() + colon + 2 && line[colon + 1] == ' ';
  if (!as_kept) {
    append(name, value);
  } else {  // in most lines: copying them whole costs half as much
    BlockPtr replaced;
    const auto size = colon + 2 + value.size();
    char* end = std::copy_n(line.data(), size, add_line(size + 1, name, value, replaced));
    *end = '\0';
  }
  return true;
}

bool Headers::try_continue(std::string_view line) {
  const auto more = trimmed(without_ending(line));
  if (!valid_header_value(more)) {
    remove_last();
    return false;
  }
  if (more.empty()) return true;
  const auto last = block_->count - 1;
  if (block_->entry(last).value_size == 0) {
    const std::string name((*this)[last].name);
    remove_last();
    append(name, more);
    return true;
  }
  const auto added = 1 + more.size();
  if (block_->used() + added > block_->capacity) move_to(2 * (block_->used() + added));
  char* end = block_->lines() + block_->text - 1;  // the NUL of the last line
  *end++ = ' ';
  *std::copy(more.begin(), more.end(), end) = '\0';
  block_->text += static_cast<std::uint32_t>(added);
  block_->entry(last).value_size += static_cast<std::uint32_t>(added);
  return true;
}

void Headers::remove_last() {
  --block_->count;
  block_->text = block_->entry(block_->count).offset;
}

void Headers::Free::operator()(Block* block) const noexcept { ::operator delete(block); }

Headers::BlockPtr Headers::make_block(std::size_t capacity) {
  capacity = (capacity + sizeof(Entry) - 1) / sizeof(Entry) * sizeof(Entry);  // entries are aligned
  if (capacity > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("the headers of one message take more than 4 GiB");
  }
  return BlockPtr(::new (::operator new(sizeof(Block) + capacity))
                      Block{0, 0, static_cast<std::uint32_t>(capacity)});
}

// Takes no more memory than it needs: a copy seldom grows.
Headers::Headers(const Headers& other) {
  if (other.empty()) return;
  auto& from = *other.block_;
  block_ = make_block(from.used());
  block_->count = from.count;
  block_->text = from.text;
  std::memcpy(block_->lines(), from.lines(), from.text);
  std::memcpy(&block_->entry(from.count - 1), &from.entry(from.count - 1),
              from.count * sizeof(Entry));
}

Headers::BlockPtr Headers::move_to(std::size_t capacity) {
  auto next = make_block(capacity);
  if (block_) {
    next->count = block_->count;
    next->text = block_->text;
    std::memcpy(next->lines(), block_->lines(), block_->text);
    if (!empty()) {
      const auto last = block_->count - 1;
      std::memcpy(&next->entry(last), &block_->entry(last), block_->count * sizeof(Entry));
    }
  }
  return std::exchange(block_, std::move(next));
}

char* Headers::add_line(std::size_t bytes, std::string_view name, std::string_view value,
                        BlockPtr& replaced) {
  const auto needed = (block_ ? block_->used() : 0) + bytes + sizeof(Entry);
  if (!block_) {
    block_ = make_block(std::max(kFirstBytes, needed));
  } else if (needed > block_->capacity) {
    replaced = move_to(std::max<std::size_t>(2 * std::size_t{block_->capacity}, needed));
  }
  auto& block = *block_;
  ::new (&block.entry(block.count)) Entry{block.text, static_cast<std::uint32_t>(name.size()),
                                          static_cast<std::uint32_t>(value.size())};
  char* line = block.lines() + block.text;
  block.text += static_cast<std::uint32_t>(bytes);
  ++block.count;
  return line;
}

void Headers::append(std::string_view name, std::string_view value) {
  BlockPtr replaced;
  const auto bytes = name.size() + (value.empty() ? 2 : 3 + value.size());
  char* line = add_line(bytes, name, value, replaced);
  line = std::copy(name.begin(), name.end(), line);
  if (value.empty()) {
    *line++ = ';';
  } else {
    *line++ = ':';
    *line++ = ' ';
    line = std::copy(value.begin(), value.end(), line);
  }
  *line = '\0';
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
  changed.reserve(size(), text_size() + (value == nullptr ? 0 : value->size()));
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
  if (block_) block_->count = block_->text = 0;
}

void Headers::reserve(std::size_t fields, std::size_t bytes) {
  const auto capacity = fields * sizeof(Entry) + bytes;
  if (capacity > (block_ ? block_->capacity : 0)) move_to(capacity);
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& entry = block_->entry(i);
    if (entry.name_size != name.size()) continue;
    const char* line = block_->lines() + entry.offset;
    if (equal_ignoring_case({line, entry.name_size}, name)) {
      return std::string_view(line + entry.name_size + 2, entry.value_size);
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
  return block_->lines() + block_->entry(index).offset;
}

bool operator==(const Headers& a, const Headers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return equal_ignoring_case(x.name, y.name) && x.value == y.value;
  });
}

}  // namespace httpretry
