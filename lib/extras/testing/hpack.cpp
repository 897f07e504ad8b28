#include <lib/extras/testing/hpack.hpp>

#include <lib/core/base/text.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace httpretry::faults {
namespace {

constexpr std::size_t kMaxTable = 4096;  // the default, which the server's SETTINGS leave unchanged
constexpr std::size_t kMaxFields = 64 * 1024;  // the same limit as for an HTTP/1 head
constexpr std::size_t kFieldOverhead = 32;     // RFC 7541 §4.1
constexpr std::size_t kEndOfString = 256;      // a symbol that no string contains
constexpr unsigned kLongestCode = 30;

// The first byte of an entry of a header block tells its kind, by the highest bit that is set. The
// bits below it begin a number. Without any of these bits, the entry is a literal that is not added
// to the table. §6.
constexpr unsigned kIndexed = 0x80;        // the index of a field in the tables; 7 bits
constexpr unsigned kAddedLiteral = 0x40;   // a literal, also added to the table; 6 bits
constexpr unsigned kNewTableLimit = 0x20;  // 5 bits

// RFC 7541, appendix A. Each as "name|" or "name: value|".
constexpr std::string_view kStaticTable =
    ":authority|:method: GET|:method: POST|:path: /|:path: /index.html|:scheme: http|"
    ":scheme: https|:status: 200|:status: 204|:status: 206|:status: 304|:status: 400|"
    ":status: 404|:status: 500|accept-charset|accept-encoding: gzip, deflate|accept-language|"
    "accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|"
    "content-disposition|content-encoding|content-language|content-length|content-location|"
    "content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match|"
    "if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|link|location|"
    "max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|"
    "server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|"
    "www-authenticate|";
constexpr std::size_t kStaticSize = 61;

// Appendix B: the code length of each symbol, in bits.
constexpr std::array<std::uint8_t, kEndOfString + 1> kCodeLengths{
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,
    7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30};

struct HuffmanCode {
  std::array<std::uint32_t, kLongestCode + 1> first{};       // the first code of each length
  std::array<std::size_t, kLongestCode + 2> start{};         // the position of its symbol
  std::array<std::uint16_t, kCodeLengths.size()> symbols{};  // in the order of their codes
};

// Builds the tables for decoding from kCodeLengths, the length of each symbol's code in bits. The
// code is canonical (RFC 7541, appendix B), so the lengths determine it: sorted by length and then
// by symbol, each code is the previous one plus 1, with a 0 appended for each additional bit.
constexpr HuffmanCode make_huffman_code() {
  HuffmanCode tables;
  std::uint32_t next_code = 0;
  std::size_t symbol_count = 0;  // symbols with a code of at most `length` bits
  for (unsigned length = 1; length <= kLongestCode; ++length) {
    next_code *= 2;  // appends the 0
    tables.first[length] = next_code;
    tables.start[length] = symbol_count;  // where the symbols of this length begin
    for (std::size_t symbol = 0; symbol < kCodeLengths.size(); ++symbol) {
      if (kCodeLengths[symbol] != length) continue;
      tables.symbols[symbol_count++] = static_cast<std::uint16_t>(symbol);
      ++next_code;
    }
  }
  tables.start[kLongestCode + 1] = symbol_count;  // the end of the longest codes
  return tables;
}
constexpr HuffmanCode kHuffmanCode = make_huffman_code();

// Decodes a string in the Huffman code of HPACK, bit by bit. Returns nullopt if the string is
// malformed. The codes of one length are consecutive numbers: those of 5 bits are 00000 to 01001.
// Longer codes begin above them: the first code of 6 bits is 010100, which is 01010 and a 0.
// In kHuffmanCode, `first[length]` is the first code of a length. The symbols of these codes are in
// `symbols`, from `start[length]` to before `start[length + 1]`.
std::optional<std::string> huffman_decoded(std::string_view bytes) {
  std::string text;
  std::uint32_t code = 0;  // the bits since the last symbol
  unsigned length = 0;     // the number of bits in `code`
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto byte = static_cast<unsigned char>(bytes[bit / 8]);
    code = code * 2 + (byte >> (7 - bit % 8) & 1U);  // the highest bit of a byte comes first
    if (++length > kLongestCode) return std::nullopt;
    // `code` is at least `first[length]`: a lower number would begin with a shorter code, which an
    // earlier iteration has decoded.
    const auto index = kHuffmanCode.start[length] + (code - kHuffmanCode.first[length]);
    // Numbers above the last code of this length are the beginnings of longer codes.
    if (index >= kHuffmanCode.start[length + 1]) continue;
    if (kHuffmanCode.symbols[index] == kEndOfString) return std::nullopt;  // §5.2 forbids it
    text += static_cast<char>(kHuffmanCode.symbols[index]);
    code = length = 0;
  }
  // What is left must be padding of the last byte: up to seven one bits.
  if (length > 7 || code != (1U << length) - 1) return std::nullopt;
  return text;
}

unsigned take_byte(std::string_view& block) {
  const auto byte = static_cast<unsigned char>(block.front());
  block.remove_prefix(1);
  return byte;
}

// §5.1: takes a number from the front of the block: the last `prefix_bits` bits of the first byte.
// If these are all ones, more bytes follow, with 7 bits each, the lowest first, and the high bit
// set in all but the last one. Returns nullopt if the block ends before the number does, or if more
// than four bytes follow.
std::optional<std::size_t> read_number(std::string_view& block, unsigned prefix_bits) {
  if (block.empty()) return std::nullopt;
  const unsigned all_ones = (1U << prefix_bits) - 1;
  std::size_t number = take_byte(block) & all_ones;
  if (number < all_ones) return number;
  for (unsigned shift = 0; shift <= 21 && !block.empty(); shift += 7) {
    const auto byte = take_byte(block);
    number += std::size_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

// §5.2: reads a string literal.
std::optional<std::string> read_string(std::string_view& block) {
  const bool huffman = !block.empty() && (static_cast<unsigned char>(block.front()) & 0x80U) != 0;
  const auto size = read_number(block, /*prefix_bits=*/7);
  if (!size || *size > block.size()) return std::nullopt;
  const auto bytes = block.substr(0, *size);
  block.remove_prefix(*size);
  return huffman ? huffman_decoded(bytes) : std::string(bytes);
}

// §5.2: returns a string literal without Huffman coding: its size, with a prefix of 7 bits as in
// read_number, and its bytes.
std::string string_literal(std::string_view text) {
  constexpr std::size_t kAllOnes = 0x7f;
  std::string bytes;
  if (text.size() < kAllOnes) {
    bytes += static_cast<char>(text.size());
  } else {
    bytes += static_cast<char>(kAllOnes);
    auto rest = text.size() - kAllOnes;
    for (; rest >= 0x80; rest /= 0x80) bytes += static_cast<char>(rest % 0x80 + 0x80);
    bytes += static_cast<char>(rest);
  }
  return bytes.append(text);
}

}  // namespace

// Decodes a compressed header block of HTTP/2 (RFC 7541) into its fields. An entry of the block is
// a field, or a new limit for the size of the table of recent fields, to which later entries refer
// by an index. Each entry begins with a number, in the last `prefix_bits` bits of its first byte.
// Returns nullopt if the block is malformed, or has more than 64 KiB of fields.
std::optional<std::vector<HpackField>> HpackDecoder::decode(std::string_view block) {
  std::vector<HpackField> fields;
  std::size_t total = 0;
  while (!block.empty()) {  // the functions below take what they read from the front of `block`
    const auto first = static_cast<unsigned char>(block.front());
    std::optional<HpackField> field;
    // The highest bit that is set in the first byte tells the kind of the entry.
    if (first >= kIndexed) {
      const auto index = read_number(block, /*prefix_bits=*/7);
      if (index) field = field_at(*index);
    } else if (first >= kAddedLiteral) {
      field = read_literal(block, /*prefix_bits=*/6);
      if (field) add_to_table(*field);
    } else if (first >= kNewTableLimit) {
      const auto limit = read_number(block, /*prefix_bits=*/5);
      if (!limit || *limit > kMaxTable) return std::nullopt;
      table_limit_ = *limit;
      shrink_table_to(table_limit_);
      continue;
    } else {  // a literal that is not added to the table
      field = read_literal(block, /*prefix_bits=*/4);
    }
    if (!field) return std::nullopt;
    total += field->name.size() + field->value.size() + kFieldOverhead;
    if (total > kMaxFields) return std::nullopt;
    fields.push_back(*std::move(field));
  }
  return fields;
}

// Returns the field with an index, which counts from 1: first the static table, then the dynamic
// one. Returns nullopt if there is no such field.
std::optional<HpackField> HpackDecoder::field_at(std::size_t index) const {
  if (index == 0 || index > kStaticSize + table_.size()) return std::nullopt;
  if (index > kStaticSize) return table_[index - kStaticSize - 1];
  auto entries = kStaticTable;
  auto entry = take_until(entries, '|');
  for (std::size_t i = 1; i < index; ++i) entry = take_until(entries, '|');
  const auto colon = entry.find(':', 1);
  if (colon == std::string_view::npos) return HpackField{std::string(entry), {}};
  return HpackField{std::string(entry.substr(0, colon)), std::string(entry.substr(colon + 2))};
}

// Takes a literal field from the front of a header block (RFC 7541, §6.2). It begins with a number:
// the index of a field in the tables that has the same name, or 0 if the name follows. At the end
// comes the value. The number begins in the last `prefix_bits` bits of the first byte. Returns
// nullopt if the field is malformed.
std::optional<HpackField> HpackDecoder::read_literal(std::string_view& block,
                                                     unsigned prefix_bits) {
  const auto index = read_number(block, prefix_bits);
  if (!index) return std::nullopt;
  HpackField field;
  if (*index == 0) {
    auto name = read_string(block);
    if (!name) return std::nullopt;
    field.name = *std::move(name);
  } else {
    const auto same_name = field_at(*index);
    if (!same_name) return std::nullopt;
    field.name = same_name->name;
  }
  auto value = read_string(block);
  if (!value) return std::nullopt;
  field.value = *std::move(value);
  return field;
}

// Adds a field to the table. A field that is larger than the table only empties it.
void HpackDecoder::add_to_table(const HpackField& field) {
  const auto size = field.name.size() + field.value.size() + kFieldOverhead;
  shrink_table_to(table_limit_ - std::min(table_limit_, size));
  if (size > table_limit_) return;
  table_.push_front(field);
  table_size_ += size;
}

void HpackDecoder::shrink_table_to(std::size_t size) {
  while (table_size_ > size) {
    table_size_ -= table_.back().name.size() + table_.back().value.size() + kFieldOverhead;
    table_.pop_back();
  }
}

std::string hpack_literal(std::string_view name, std::string_view value) {
  return '\0' + string_literal(name) + string_literal(value);
}

}  // namespace httpretry::faults
