#include "lib/json/ordered_json.hpp"

namespace httpretry {
namespace {

constexpr std::size_t kLineWidth = 100;

std::string name_of(const OrderedJson& json, const std::string& key) {
  return json.is_object()
             ? OrderedJson(key).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + ": "
             : std::string();
}

std::string one_line_of(const OrderedJson& json) {
  if (!json.is_structured()) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (!text.empty()) text += ", ";
    text += name_of(json, key) + one_line_of(value);
  }
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// `used` is what stands before it on its line.
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

}  // namespace httpretry
