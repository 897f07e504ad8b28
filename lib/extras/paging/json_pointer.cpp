#include "json_pointer.hpp"

#include "lib/core/base/text.hpp"

#include <cstddef>
#include <string>

namespace httpretry::detail {
namespace {

// Returns a part of a pointer without its escapes: "~1" stands for "/", and "~0" for "~".
std::string unescaped(std::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool escaped = part[i] == '~';
    if (escaped) ++i;
    text += !escaped ? part[i] : part[i] == '1' ? '/' : '~';
  }
  return text;
}

}  // namespace

bool is_json_pointer(std::string_view text) {
  if (!text.empty() && text[0] != '/') return false;
  for (auto at = text.find('~'); at != text.npos; at = text.find('~', at + 1)) {
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
  }
  return true;
}

// Returns the value that a valid JSON pointer such as "/items/0/id" leads to from `json`, or
// nullptr if there is no such value. Each part of the pointer is the name of a member or the index
// of an item. "-" is the last item, unlike in RFC 6901, where it is the position after it.
const JsonNode* value_at(const JsonNode& json, std::string_view pointer) {
  const auto* value = &json;
  while (value != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);  // the "/" before each part
    const auto part = unescaped(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.find('/'), pointer.size()));
    if (value->is(JsonNode::Type::Array)) {
      const auto size = value->children.size();
      // A part that is not a number becomes `size`, which is past the end. So is "-" in an empty
      // array, where size - 1 wraps around to the largest number.
      const auto index = part == "-" ? size - 1 : to_number<std::size_t>(part).value_or(size);
      value = index < size ? value->children[index] : nullptr;
    } else {
      // A value that is not an object has no members, although the pointer names one.
      value = value->is(JsonNode::Type::Object) ? value->member(part) : nullptr;
    }
  }
  return value;
}

}  // namespace httpretry::detail
