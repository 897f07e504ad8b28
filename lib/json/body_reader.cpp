#include "lib/retry/body_reader.hpp"

#include "lib/http/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace httpretry::policy {
namespace {

using Json = nlohmann::json;

// Whether `token`, as RFC 6901 escapes it, spells `name`.
bool spells(std::string_view token, std::string_view name) {
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    const char letter = !escape ? token[i] : token[++i] == '1' ? '/' : '~';
    if (name.empty() || name.front() != letter) return false;
    name.remove_prefix(1);
  }
  return name.empty();
}

// The name that ends in front of a colon, in a text without escapes; empty where none does.
std::string_view name_at_end(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (!text.ends_with('"')) return {};
  text.remove_suffix(1);
  return text.substr(text.rfind('"') + 1);
}

using Wanted = std::vector<const JsonPointer*>;

// The pointers that may lead to a value. Most responses have few of the names, and to find that out
// costs a tenth of parsing: a text has few colons, and most names do not even have the right
// length.
Wanted possible(std::string_view json, std::span<const JsonPointer> pointers) {
  // Then a name may be spelled otherwise.
  const bool escapes = json.find('\\') != std::string_view::npos;
  Wanted all;
  std::uint64_t lengths = 0;
  for (const auto& pointer : pointers) {
    if (escapes || pointer.length == 0) all.push_back(&pointer);
    lengths |= pointer.length;
  }
  if (escapes) return all;
  for (auto colon = json.find(':'); colon < json.size(); colon = json.find(':', colon + 1)) {
    const auto name = name_at_end(json.substr(0, colon));
    if ((lengths & JsonPointer::bit_of_length(name)) == 0) continue;
    for (const auto& pointer : pointers) {
      const bool named = pointer.length != 0 && pointer.name == name;
      if (named && std::find(all.begin(), all.end(), &pointer) == all.end()) {
        all.push_back(&pointer);
      }
    }
  }
  std::sort(all.begin(), all.end());  // as in `pointers`
  return all;
}

// Gets the values of a document one after the other, and keeps those at the wanted pointers. It
// knows the path to the current value and builds no tree, so it needs little memory, whatever the
// depth.
class Finder : public nlohmann::json_sax<Json> {
 public:
  explicit Finder(const Wanted& wanted) : wanted_(wanted) {}
  [[nodiscard]] std::vector<BodyValue> take() { return std::move(found_); }

  bool null() override { return step(), true; }
  bool boolean(bool value) override { return found(value ? "true" : "false", false); }
  bool number_integer(std::int64_t value) override { return found(std::to_string(value), false); }
  bool number_unsigned(std::uint64_t value) override { return found(std::to_string(value), false); }
  bool number_float(double, const std::string& text) override { return found(text, false); }
  bool string(std::string& value) override { return found(value, true); }
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

  // A value begins.
  void step() {
    if (!way_.empty() && way_.back().array) ++way_.back().next;
  }
  bool enter(bool array) {
    if (!found({}, false) || way_.size() >= kBodyDepth) return false;
    way_.push_back({array, 0, {}});
    return true;
  }
  bool found(std::string_view text, bool is_string) {
    step();
    for (const auto* pointer : wanted_) {
      if (!stands_at(pointer->text)) continue;
      if (found_.size() == kBodyValues) return false;
      found_.push_back({pointer->text, std::string(text.substr(0, kBodyText)), is_string});
    }
    return true;
  }
  [[nodiscard]] bool stands_at(std::string_view pointer) const {
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

  const Wanted& wanted_;
  std::vector<Level> way_;
  std::vector<BodyValue> found_;
};

}  // namespace

std::vector<BodyValue> json_values(std::string_view json, std::span<const JsonPointer> pointers) {
  const auto wanted = possible(json, pointers);
  if (wanted.empty()) return {};
  Finder finder(wanted);
  Json::sax_parse(json, &finder);
  return finder.take();
}

}  // namespace httpretry::policy
