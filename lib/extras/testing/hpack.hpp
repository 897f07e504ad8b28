// HPACK (RFC 7541): how HTTP/2 writes headers.
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

// Reads the header blocks of one side of a connection, in the order in which they were sent.
class HpackDecoder {
 public:
  // Empty if the block is malformed, or has more than 64 KiB of headers.
  [[nodiscard]] std::optional<std::vector<HpackField>> decode(std::string_view block);

 private:
  [[nodiscard]] std::optional<HpackField> field_at(std::size_t index) const;
  [[nodiscard]] std::optional<HpackField> read_literal(std::string_view& block, unsigned bits);
  void add(const HpackField& field);
  void shrink_to(std::size_t size);

  std::deque<HpackField> table_;  // the newest first
  std::size_t size_ = 0;
  std::size_t limit_ = 4096;
};

// A header as a literal that needs no table. The name is lower case.
[[nodiscard]] std::string hpack_literal(std::string_view name, std::string_view value);

}  // namespace httpretry::faults
