// What the classifier reads from a body. Bounded, and without errors: malformed parts are ignored.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy {

// Far more than any error body of an API has; they bound time and memory for hostile ones.
inline constexpr std::size_t kBodyDepth = 64;    // nothing deeper is read
inline constexpr std::size_t kBodyValues = 256;  // values found in one body
inline constexpr std::size_t kBodyText = 4096;   // bytes kept of one value

struct BodyValue {
  std::string_view path;  // the one by which it was found
  std::string text;       // numbers and booleans as in the body; empty for objects and arrays
  bool is_string = false;
};

// A pointer of RFC 6901, where "*" is any array index.
using JsonPointer = std::string_view;

// The values at any of `pointers`, in the order of the text, without null. Where the text is cut
// short or malformed, those before that position. Defined in lib/core/json, since this room has no
// JSON library.
std::vector<BodyValue> json_values(std::string_view json, std::span<const JsonPointer> pointers);

// The texts of the elements at any of `paths`, in the order in which they end: "/Error/Code" is
// relative to the root, "Code" is an element of that name anywhere; namespace prefixes are ignored.
// A text with a document type is not read at all: no response of an API has one.
std::vector<BodyValue> xml_values(std::string_view xml, std::span<const std::string_view> paths);

}  // namespace httpretry::policy
