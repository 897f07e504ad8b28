// The values that the classifier reads from a body. Reading is bounded and never fails: malformed
// parts are ignored.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy {

// Far above any real error body; they bound time and memory for a hostile one.
inline constexpr std::size_t kBodyDepth = 64;    // deeper values are not read
inline constexpr std::size_t kBodyValues = 256;  // values found in one body
inline constexpr std::size_t kBodyText = 4096;   // bytes kept of one value

struct BodyValue {
  std::string_view path;  // the requested path that matched
  std::string text;       // numbers and booleans as written; empty for objects and arrays
  bool is_string = false;
};

// A JSON pointer (RFC 6901) in which "*" stands for any array index.
using JsonPointer = std::string_view;

// Returns the non-null values at any of `pointers`, in the order of the text. If the text is
// truncated or malformed, returns the values before that position. Defined in lib/core/json,
// because this module has no JSON library.
std::vector<BodyValue> json_values(std::string_view json, std::span<const JsonPointer> pointers);

// Returns the texts of the elements at any of `paths`, in the order in which they end.
// "/Error/Code" is relative to the root, "Code" is an element of that name anywhere. Namespace
// prefixes are ignored. A text with a document type is not read at all: no API response has one.
std::vector<BodyValue> xml_values(std::string_view xml, std::span<const std::string_view> paths);

}  // namespace httpretry::policy
