#include "lib/policy/setting_text.hpp"

#include <algorithm>
#include <string_view>

namespace httpretry::policy_file {
namespace {

class SettingsReader {
 public:
  explicit SettingsReader(Document& document)
      : document_(document), root_(document.add(Json::Type::Object, nullptr)) {}

  void set(std::string_view key, const std::string& text) {
    auto* object = &root_;
    for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      object = &member(*object, key.substr(0, dot), Json::Type::Object);
      key.remove_prefix(dot + 1);
    }
    Report report("");
    read(text, document_, report);
    const auto* const parsed = report.failed() ? nullptr : document_.root;
    auto& value = member(*object, key, parsed == nullptr ? Json::Type::String : parsed->type);
    if (parsed == nullptr) {
      value.text = document_.keep(text);
    } else {
      copy(*parsed, value);
    }
  }
  [[nodiscard]] const Json& root() const { return root_; }

 private:
  // Made where it is not there, or is of another type; an object that is there is kept.
  Json& member(Json& object, std::string_view key, Json::Type type) {
    const auto* const there = find(object, key);
    if (there != nullptr && there->is(Json::Type::Object) && type == Json::Type::Object) {
      return const_cast<Json&>(*there);  // the document is ours
    }
    auto& children = object.children;
    children.erase(std::remove(children.begin(), children.end(), there), children.end());
    auto& made = document_.add(type, &object);
    made.key = document_.keep(std::string(key));
    children.push_back(&made);
    return made;
  }
  static const Json* find(const Json& object, std::string_view key) {
    const auto found = std::find_if(object.children.begin(), object.children.end(),
                                    [&](const Json* child) { return child->key == key; });
    return found == object.children.end() ? nullptr : *found;
  }
  void copy(const Json& from, Json& to) {
    to.boolean = from.boolean;
    to.text = from.text;
    to.place = from.place;
    to.children.clear();
    for (const auto* const child : from.children) {
      auto& made = document_.add(child->type, &to);
      made.key = child->key;
      copy(*child, made);
      to.children.push_back(&made);
    }
  }

  Document& document_;
  Json& root_;
};

}  // namespace

const Json& object_of(std::span<const Setting> settings, Document& document) {
  SettingsReader reader(document);
  for (const auto& [key, value] : settings) reader.set(key, value);
  return reader.root();
}

}  // namespace httpretry::policy_file
