#include "lib/core/retry/body_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <utility>

namespace httpretry::policy {
namespace {

using Json = nlohmann::json;

// Returns whether `token`, escaped as in RFC 6901, means `name`.
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
class Finder : public nlohmann::json_sax<Json> {
 public:
  explicit Finder(std::span<const JsonPointer> pointers) : pointers_(pointers) {}
  [[nodiscard]] std::vector<BodyValue> take() { return std::move(found_); }

  bool null() override { return step(), true; }
  bool boolean(bool value) override { return visit(value ? "true" : "false", false); }
  bool number_integer(std::int64_t value) override { return visit(std::to_string(value), false); }
  bool number_unsigned(std::uint64_t value) override { return visit(std::to_string(value), false); }
  bool number_float(double, const std::string& text) override { return visit(text, false); }
  bool string(std::string& value) override { return visit(value, true); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return enter(false); }
  bool start_array(std::size_t) override { return enter(true); }
  bool end_object() override { return way_.pop_back(), true; }
  bool end_array() override { return way_.pop_back(), true; }
  bool key(std::string& name) override { return way_.back().key = name, true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  struct Level {
    bool array = false;
    std::size_t next = 0;  // the number of elements that have begun
    std::string key;
  };

  // Counts a value that begins.
  void step() {
    if (!way_.empty() && way_.back().array) ++way_.back().next;
  }
  bool enter(bool array) {
    if (!visit({}, false) || way_.size() >= kBodyDepth) return false;
    way_.push_back({array, 0, {}});
    return true;
  }
  bool visit(std::string_view text, bool is_string) {
    step();
    for (const auto pointer : pointers_) {
      if (!is_at(pointer)) continue;
      if (found_.size() == kBodyValues) return false;
      found_.push_back({pointer, std::string(text.substr(0, kBodyText)), is_string});
    }
    return true;
  }
  [[nodiscard]] bool is_at(std::string_view pointer) const {
    for (const auto& level : way_) {
      if (!pointer.starts_with('/')) return false;
      pointer.remove_prefix(1);
      const auto token = pointer.substr(0, pointer.find('/'));
      const bool same = level.array ? token == "*" || token == std::to_string(level.next - 1)
                                    : spells(token, level.key);
      if (!same) return false;
      pointer.remove_prefix(token.size());
    }
    return pointer.empty();
  }

  std::span<const JsonPointer> pointers_;
  std::vector<Level> way_;
  std::vector<BodyValue> found_;
};

}  // namespace

std::vector<BodyValue> json_values(std::string_view json, std::span<const JsonPointer> pointers) {
  Finder finder(pointers);
  Json::sax_parse(json, &finder);
  return finder.take();
}

}  // namespace httpretry::policy
