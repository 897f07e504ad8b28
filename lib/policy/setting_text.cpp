#include "lib/policy/setting_text.hpp"

#include <algorithm>
#include <string_view>

namespace httpretry::policy_file {
namespace {

class SettingsReader {
 public:
  explicit SettingsReader(JsonTree& document)
      : document_(document), root_(document.add(JsonNode::Type::Object, nullptr)) {}

  void set(std::string_view key, const std::string& text) {
    auto* object = &root_;
    for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      object = &member(*object, key.substr(0, dot), JsonNode::Type::Object);
      key.remove_prefix(dot + 1);
    }
    Problems report("");
    read_json(text, document_, report);
    const auto* const parsed = report.failed() ? nullptr : document_.root;
    auto& value = member(*object, key, parsed == nullptr ? JsonNode::Type::String : parsed->type);
    if (parsed == nullptr) {
      value.text = document_.keep(text);
    } else {
      copy(*parsed, value);
    }
  }
  [[nodiscard]] const JsonNode& root() const { return root_; }

 private:
  // Made where it is not there, or is of another type; an object that is there is kept.
  JsonNode& member(JsonNode& object, std::string_view key, JsonNode::Type type) {
    const auto* const there = find(object, key);
    if (there != nullptr && there->is(JsonNode::Type::Object) && type == JsonNode::Type::Object) {
      return const_cast<JsonNode&>(*there);  // the document is ours
    }
    auto& children = object.children;
    children.erase(std::remove(children.begin(), children.end(), there), children.end());
    auto& made = document_.add(type, &object);
    made.key = document_.keep(std::string(key));
    children.push_back(&made);
    return made;
  }
  static const JsonNode* find(const JsonNode& object, std::string_view key) {
    const auto found = std::find_if(object.children.begin(), object.children.end(),
                                    [&](const JsonNode* child) { return child->key == key; });
    return found == object.children.end() ? nullptr : *found;
  }
  void copy(const JsonNode& from, JsonNode& to) {
    to.boolean = from.boolean;
    to.text = from.text;
    to.position = from.position;
    to.children.clear();
    for (const auto* const child : from.children) {
      auto& made = document_.add(child->type, &to);
      made.key = child->key;
      copy(*child, made);
      to.children.push_back(&made);
    }
  }

  JsonTree& document_;
  JsonNode& root_;
};

}  // namespace

const JsonNode& object_of(std::span<const Setting> settings, JsonTree& document) {
  SettingsReader reader(document);
  for (const auto& [key, value] : settings) reader.set(key, value);
  return reader.root();
}

}  // namespace httpretry::policy_file
