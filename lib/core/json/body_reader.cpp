#include "lib/core/retry/body_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <utility>

namespace httpretry::policy {
namespace {

using Json = nlohmann::json;

// Returns whether `token`, in which "~0" is "~" and "~1" is "/" (RFC 6901), means `name`.
bool spells(std::string_view token, std::string_view name) {
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    const char letter = !escape ? token[i] : token[++i] == '1' ? '/' : '~';
    if (name.empty() || name.front() != letter) return false;
    name.remove_prefix(1);
  }
  return name.empty();
}

// Receives the values of a document one after the other, and keeps those at the pointers. It knows
// the path to the current value but builds no tree, so it needs little memory whatever the depth.
// Each function returns whether the parser should continue.
class Finder : public nlohmann::json_sax<Json> {
 public:
  explicit Finder(std::span<const JsonPointer> pointers) : pointers_(pointers) {}
  [[nodiscard]] std::vector<BodyValue> take() { return std::move(found_); }

  bool null() override { return count_element(); }
  bool boolean(bool value) override { return visit(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return visit(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return visit(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return visit(text); }
  bool string(std::string& value) override { return visit(value, /*is_string=*/true); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return enter(Container::Object); }
  bool start_array(std::size_t) override { return enter(Container::Array); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(std::string& name) override {
    path_.back().key = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  enum class Container : std::uint8_t { Object, Array };
  // An object or array that contains the current value.
  struct Level {
    Container container = Container::Object;
    std::size_t elements = 0;  // the number of elements of an array that have begun
    std::string key;           // of the current member of an object
  };

  // Counts a value that begins, if it is an element of an array. Always returns true.
  bool count_element() {
    if (!path_.empty() && path_.back().container == Container::Array) ++path_.back().elements;
    return true;
  }
  bool enter(Container container) {
    if (!visit({}) || path_.size() >= kBodyDepth) return false;
    path_.push_back({container, /*elements=*/0, /*key=*/{}});
    return true;
  }
  bool leave() {
    path_.pop_back();
    return true;
  }
  // Keeps the current value for each pointer to it. `text` is empty for objects and arrays.
  bool visit(std::string_view text, bool is_string = false) {
    count_element();
    for (const auto pointer : pointers_) {
      if (!is_at(pointer)) continue;
      if (found_.size() == kBodyValues) return false;
      found_.push_back({pointer, std::string(text.substr(0, kBodyText)), is_string});
    }
    return true;
  }
  // Returns whether the path to the current value is the one in `pointer`, in which "*" stands for
  // any index.
  [[nodiscard]] bool is_at(std::string_view pointer) const {
    for (const auto& level : path_) {
      if (!pointer.starts_with('/')) return false;
      pointer.remove_prefix(1);
      const auto token = pointer.substr(0, pointer.find('/'));
      const bool matches = level.container == Container::Array
                               ? token == "*" || token == std::to_string(level.elements - 1)
                               : spells(token, level.key);
      if (!matches) return false;
      pointer.remove_prefix(token.size());
    }
    return pointer.empty();
  }

  std::span<const JsonPointer> pointers_;
  std::vector<Level> path_;  // the outermost container first
  std::vector<BodyValue> found_;
};

}  // namespace

std::vector<BodyValue> json_values(std::string_view json, std::span<const JsonPointer> pointers) {
  Finder finder(pointers);
  Json::sax_parse(json, &finder);
  return finder.take();
}

}  // namespace httpretry::policy
