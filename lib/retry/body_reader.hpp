// What the classifier may ask of a body. Bounded and never failing: what cannot be read is not
// there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy {

inline constexpr std::size_t kBodyDepth = 64;    // nothing deeper is looked at
inline constexpr std::size_t kBodyValues = 256;  // values found in one body
inline constexpr std::size_t kBodyText = 4096;   // bytes kept of one value

struct BodyValue {
  std::size_t path = 0;  // index of the path at which it stands
  std::string text;      // numbers and booleans as they are spelled; empty for objects and arrays
  bool is_string = false;
};

// What stands at any of `pointers` (RFC 6901, where "*" is any array index), in the order of the
// text; null is nothing. Where the text breaks off or is no JSON, what came before that.
// Defined in lib/json: this layer knows no JSON library.
std::vector<BodyValue> json_values(std::string_view json,
                                   std::span<const std::string_view> pointers);

// The texts of the elements at any of `paths`, in the order in which they end: "/Error/Code" is
// counted from the root, "Code" is an element of that name anywhere; namespace prefixes do not
// count. What comments, attributes and processing instructions hold is no element. A text with a
// document type is not read at all: nothing that needs one is an answer of an API.
std::vector<BodyValue> xml_values(std::string_view xml, std::span<const std::string_view> paths);

}  // namespace httpretry::policy
