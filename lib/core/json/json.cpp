#include "lib/core/json/detail/json.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace httpretry {
namespace {

constexpr std::size_t kQuoted = 80;
constexpr std::size_t kLine = 200;
constexpr std::size_t kPointer = 1000;

// Does not cut inside a character.
std::string_view shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

void escape_into(std::string& out, std::string_view text, bool quotes) {
  for (const auto c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (quotes && (c == '"' || c == '\\')) {
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

void text_into(std::string& out, const JsonNode& json) {
  switch (json.type) {
    case JsonNode::Type::Null: out += "null"; return;
    case JsonNode::Type::Boolean: out += json.boolean ? "true" : "false"; return;
    case JsonNode::Type::Number: out += json.text; return;
    case JsonNode::Type::String: out += quoted_text(json.text); return;
    case JsonNode::Type::Array:
    case JsonNode::Type::Object: break;
  }
  const auto object = json.is(JsonNode::Type::Object);
  out += object ? '{' : '[';
  for (const auto* const child : json.children) {
    if (child != json.children.front()) out += ',';
    if (object) out += quoted_text(child->key) + ':';
    text_into(out, *child);
  }
  out += object ? '}' : ']';
}

std::size_t number_of(const JsonNode& child) {
  const auto& children = child.parent->children;
  // Elements are in the order of the text, and a file may have very many of them.
  const auto found = std::lower_bound(
      children.begin(), children.end(), &child,
      [](const JsonNode* a, const JsonNode* b) { return a->position < b->position; });
  return static_cast<std::size_t>(found - children.begin());
}

constexpr std::size_t kLineWidth = 100;

std::string scalar_text(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// Returns the text before an element of `json`: the key of a member.
std::string name_of(const OrderedJson& json, const std::string& key) {
  return json.is_object() ? scalar_text(key) + ": " : "";
}

std::string one_line_of(const OrderedJson& json) {
  if (!json.is_structured()) return scalar_text(json);
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (!text.empty()) text += ", ";
    text += name_of(json, key) + one_line_of(value);
  }
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// `used` is the number of bytes before the value on its line.
void append(std::string& out, const OrderedJson& json, int levels, std::size_t indent,
            std::size_t used) {
  if (levels <= 0 || !json.is_structured() || json.empty()) {
    auto line = one_line_of(json);
    if (!json.is_structured() || used + line.size() <= kLineWidth) {
      out += line;
      return;
    }
  }
  const std::string space(indent + 2, ' ');
  out += json.is_object() ? "{" : "[";
  auto first = true;
  for (const auto& [key, value] : json.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    const auto name = space + name_of(json, key);
    out += name;
    append(out, value, levels - 1, indent + 2, name.size());
  }
  out += "\n" + std::string(indent, ' ') + (json.is_object() ? "}" : "]");
}

}  // namespace

std::string json_text(const OrderedJson& json, int levels) {
  std::string out;
  append(out, json, levels, 0, 0);
  return out;
}

const JsonNode* JsonNode::member(std::string_view name) const {
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const JsonNode* child) { return child->key == name; });
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

JsonNode& JsonTree::add(const OrderedJson& json, const JsonNode* parent) {
  using Type = JsonNode::Type;
  constexpr Type kTypes[] = {Type::Null,    Type::Object, Type::Array,  Type::String,
                             Type::Boolean, Type::Number, Type::Number, Type::Number};
  auto& node = add(kTypes[static_cast<std::size_t>(json.type())], parent);
  if (json.is_string()) node.text = keep(json.get<std::string>());
  if (json.is_number()) node.text = keep(json.dump());
  node.boolean = json.is_boolean() && json.get<bool>();
  if (!json.is_structured()) return node;
  for (const auto& [key, value] : json.items()) {
    auto& child = add(value, &node);
    child.position.column = static_cast<int>(node.children.size());  // counts the siblings
    if (json.is_object()) child.key = keep(key);
    node.children.push_back(&child);
  }
  return node;
}

std::string pointer_to(const JsonNode& json) {
  std::vector<const JsonNode*> way;
  for (const auto* at = &json; at->parent != nullptr; at = at->parent) way.push_back(at);
  std::string pointer;
  for (auto at = way.rbegin(); at != way.rend() && pointer.size() < kPointer; ++at) {
    pointer += '/';
    if ((*at)->parent->is(JsonNode::Type::Array)) {
      pointer += std::to_string(number_of(**at));
      continue;
    }
    for (const auto c : shortened((*at)->key, kPointer)) {
      if (c == '~' || c == '/') {
        pointer += c == '~' ? "~0" : "~1";
      } else {
        pointer += c;
      }
    }
  }
  return pointer;
}

std::string compact(const JsonNode& json) {
  std::string out;
  text_into(out, json);
  return out;
}

bool is_within(const JsonNode& json, const JsonNode& object) {
  const auto* at = &json;
  while (at != nullptr && at != &object) at = at->parent;
  return at == &object;
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  escape_into(out, text, true);
  return out + '"';
}

std::string one_line(std::string_view text) {
  std::string out;
  escape_into(out, shortened(text, kLine), false);
  return text.size() > kLine ? out + "..." : out;
}

std::string described(const JsonNode& json) {
  switch (json.type) {
    case JsonNode::Type::Array: return "an array";
    case JsonNode::Type::Object: return "an object";
    case JsonNode::Type::String:
    case JsonNode::Type::Number: {
      const auto text = shortened(json.text, kQuoted);
      const auto shown = json.is(JsonNode::Type::String) ? quoted_text(text) : std::string(text);
      return json.text.size() > kQuoted ? shown + "..." : shown;
    }
    case JsonNode::Type::Null:
    case JsonNode::Type::Boolean: break;
  }
  return compact(json);
}

}  // namespace httpretry
