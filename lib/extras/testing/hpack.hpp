// HPACK (RFC 7541), the compression of HTTP/2's headers.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::faults {

struct HpackField {
  std::string name;
  std::string value;
};

// Decodes the header blocks that one side of a connection sends. It must decode all of them, in
// order, because they share a table.
class HpackDecoder {
 public:
  // Returns nullopt if the block is malformed or has more than 64 KiB of headers.
  [[nodiscard]] std::optional<std::vector<HpackField>> decode(std::string_view block);

 private:
  [[nodiscard]] std::optional<HpackField> field_at(std::size_t index) const;
  [[nodiscard]] std::optional<HpackField> read_literal(std::string_view& block,
                                                       unsigned prefix_bits);
  void add_to_table(const HpackField& field);
  void shrink_table_to(std::size_t size);

  std::deque<HpackField> table_;  // the newest first
  std::size_t table_size_ = 0;
  std::size_t table_limit_ = 4096;
};

// Encodes a header as a literal, which needs no table. The name must be lowercase.
[[nodiscard]] std::string hpack_literal(std::string_view name, std::string_view value);

}  // namespace httpretry::faults
