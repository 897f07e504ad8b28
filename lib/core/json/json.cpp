#include "lib/core/json/detail/json.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::detail::json {
namespace {

// The lengths, in bytes, at which texts in messages are cut.
constexpr std::size_t kMaxQuoted = 80;
constexpr std::size_t kMaxLine = 200;
constexpr std::size_t kMaxPointer = 1000;

// Returns the first `most` bytes of a text, or a few less so that no UTF-8 character is cut.
std::string_view shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

enum class Escape : std::uint8_t { OnlyControls, QuotesToo };

// Appends a text with its control characters as "\u00XX". With QuotesToo, also puts a backslash
// before each quote and backslash.
void append_escaped(std::string& out, std::string_view text, Escape escape) {
  for (const auto c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (escape == Escape::QuotesToo && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      append_hex(out, byte);
    } else {
      out += c;
    }
  }
}

// Appends a value as JSON on one line without spaces: {"max_attempts":5,"statuses":[408,"5xx"]}.
// Copies each number as the file spells it: 1e3 stays 1e3. Calls itself for nested values.
void append_compact(std::string& out, const JsonNode& json) {
  switch (json.type) {
    case JsonNode::Type::Null: out += "null"; return;
    case JsonNode::Type::Boolean: out += json.boolean ? "true" : "false"; return;
    case JsonNode::Type::Number: out += json.text; return;
    case JsonNode::Type::String: out += quoted_text(json.text); return;
    case JsonNode::Type::Array:
    case JsonNode::Type::Object: break;  // handled below
  }
  const bool is_object = json.is(JsonNode::Type::Object);
  out += is_object ? '{' : '[';
  for (const auto* const child : json.children) {
    if (child != json.children.front()) out += ',';
    if (is_object) out += quoted_text(child->key) + ':';
    append_compact(out, *child);
  }
  out += is_object ? '}' : ']';
}

// Returns the index of an element of an array. Uses a binary search for its position in the text,
// because an array may have very many elements.
std::size_t index_in_array(const JsonNode& element) {
  const auto& elements = element.parent->children;
  const auto place = std::ranges::lower_bound(elements, element.position, {}, &JsonNode::position);
  return static_cast<std::size_t>(place - elements.begin());
}

constexpr std::size_t kLineWidth = 100;

std::string scalar_text(const OrderedJson& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace);
}

// Returns `"key": `, the text before a member of the object `json`, or "" if `json` is an array.
std::string member_prefix(const OrderedJson& json, const std::string& key) {
  return json.is_object() ? scalar_text(key) + ": " : "";
}

std::string one_line_of(const OrderedJson& json) {
  if (!json.is_structured()) return scalar_text(json);
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (!text.empty()) text += ", ";
    text += member_prefix(json, key) + one_line_of(value);
  }
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// Appends a value as JSON for people. An object or array in the outermost `levels` levels of
// nesting gets a line for each member. A deeper one gets them only if it is too long for one line.
// Every other value is on one line. With `levels` 1:
//   {
//     "name": "careful",
//     "statuses": [408, 429, 503]
//   }
// `indent` is the number of spaces at the beginning of the line where the value begins. `column` is
// where the value begins in that line: the number of spaces, plus the length of `"statuses": `.
void append_lines(std::string& out, const OrderedJson& json, int levels, std::size_t indent,
                  std::size_t column) {
  const bool has_members = json.is_structured() && !json.empty();
  if (levels <= 0 || !has_members) {
    const auto line = one_line_of(json);
    const bool fits = column + line.size() <= kLineWidth;
    if (fits || !has_members) {
      out += line;
      return;
    }
  }
  const auto member_indent = indent + 2;
  out += json.is_object() ? "{" : "[";
  auto separator = "\n";  // before the first member; ",\n" before each further one
  for (const auto& [key, value] : json.items()) {
    out += std::exchange(separator, ",\n");
    const auto spaces_and_key = std::string(member_indent, ' ') + member_prefix(json, key);
    out += spaces_and_key;
    append_lines(out, value, levels - 1, member_indent, /*column=*/spaces_and_key.size());
  }
  // The closing bracket stands below the beginning of the line with the opening one.
  out += "\n" + std::string(indent, ' ') + (json.is_object() ? "}" : "]");
}

}  // namespace

std::string json_text(const OrderedJson& json, int levels) {
  std::string out;
  append_lines(out, json, levels, /*indent=*/0, /*column=*/0);
  return out;
}

const JsonNode* JsonNode::member(std::string_view name) const {
  const auto found = std::ranges::find(children, name, &JsonNode::key);
  return found == children.end() ? nullptr : *found;
}

const JsonNode* JsonNode::find(std::string_view name) const {
  const auto* const found = member(name);
  return found == nullptr || found->is(Type::Null) ? nullptr : found;
}

JsonNode& JsonTree::add(JsonNode::Type type, const JsonNode* parent) {
  auto& json = nodes_.emplace_back();
  json.type = type;
  json.parent = parent;
  return json;
}

// Adds nodes for a value and everything in it, and returns the node of the value. The node refers
// to `parent` (nullptr for the root), but the caller adds it to the children of `parent`.
JsonNode& JsonTree::add(const OrderedJson& json, const JsonNode* parent) {
  using Type = JsonNode::Type;
  // By the numbers of nlohmann's enum value_t: null, object, array, string, boolean, and then
  // integer, unsigned integer and floating-point number.
  constexpr Type kTypes[] = {Type::Null,    Type::Object, Type::Array,  Type::String,
                             Type::Boolean, Type::Number, Type::Number, Type::Number};
  auto& node = add(kTypes[static_cast<std::size_t>(json.type())], parent);  // an empty node
  // A node has only views of its text and its key. `keep` copies them into the tree.
  if (json.is_string()) node.text = keep(json.get<std::string>());
  if (json.is_number()) node.text = keep(json.dump());
  node.boolean = json.is_boolean() && json.get<bool>();
  if (!json.is_structured()) return node;
  for (const auto& [key, value] : json.items()) {
    auto& child = add(value, &node);  // does not move `node`, because the tree has a deque
    // The value was not read from a text, so it has no line and column. But siblings are sorted and
    // searched by position. So the column is the number of earlier siblings.
    child.position.column = static_cast<int>(node.children.size());
    if (json.is_object()) child.key = keep(key);
    node.children.push_back(&child);
  }
  return node;
}

// Returns the JSON pointer (RFC 6901) to a value: "/endpoints/0/name", or "" for the root. Stops
// when the pointer is longer than kMaxPointer, because the keys of a file may be very long.
std::string pointer_to(const JsonNode& json) {
  std::vector<const JsonNode*> path;  // from the value up to a child of the root
  for (const auto* node = &json; node->parent != nullptr; node = node->parent) path.push_back(node);
  std::string pointer;
  // From the child of the root down to the value, so in the order of the pointer.
  for (auto step = path.rbegin(); step != path.rend() && pointer.size() < kMaxPointer; ++step) {
    const auto& node = **step;
    pointer += '/';
    if (node.parent->is(JsonNode::Type::Array)) {
      pointer += std::to_string(index_in_array(node));
      continue;
    }
    for (const auto& c : shortened(node.key, kMaxPointer)) {
      // In a key, "~" is written as "~0", and "/" as "~1".
      pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string_view(&c, 1);
    }
  }
  return pointer;
}

std::string compact(const JsonNode& json) {
  std::string out;
  append_compact(out, json);
  return out;
}

bool is_within(const JsonNode& json, const JsonNode& object) {
  const auto* node = &json;
  while (node != nullptr && node != &object) node = node->parent;
  return node == &object;
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  append_escaped(out, text, Escape::QuotesToo);
  return out + '"';
}

std::string one_line(std::string_view text) {
  std::string out;
  append_escaped(out, shortened(text, kMaxLine), Escape::OnlyControls);
  return text.size() > kMaxLine ? out + "..." : out;
}

// Returns a value as messages quote it: a string or number that is cut after kMaxQuoted bytes, or
// "an array", "an object", "true", "false", "null".
std::string described(const JsonNode& json) {
  switch (json.type) {
    case JsonNode::Type::Array: return "an array";
    case JsonNode::Type::Object: return "an object";
    case JsonNode::Type::Null:
    case JsonNode::Type::Boolean: return compact(json);
    case JsonNode::Type::String:
    case JsonNode::Type::Number: break;
  }
  const auto text = shortened(json.text, kMaxQuoted);
  const auto shown = json.is(JsonNode::Type::String) ? quoted_text(text) : std::string(text);
  return json.text.size() > kMaxQuoted ? shown + "..." : shown;
}

}  // namespace httpretry::detail::json
