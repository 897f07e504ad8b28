#include "lib/policy/document.hpp"

#include "lib/policy/suggest.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace httpretry::policy_file {
namespace {

constexpr std::size_t kQuoted = 80;
constexpr std::size_t kLine = 200;
constexpr std::size_t kPointer = 1000;

// Not in the middle of a character.
std::string_view shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

void escape_into(std::string& out, std::string_view text, bool quotes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const auto c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (quotes && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xFU];
    } else {
      out += c;
    }
  }
}

void text_into(std::string& out, const Json& json) {
  switch (json.type) {
    case Json::Type::Null: out += "null"; return;
    case Json::Type::Boolean: out += json.boolean ? "true" : "false"; return;
    case Json::Type::Number: out += json.text; return;
    case Json::Type::String: out += quoted(json.text); return;
    case Json::Type::Array:
    case Json::Type::Object: break;
  }
  const auto object = json.is(Json::Type::Object);
  out += object ? '{' : '[';
  for (const auto* const child : json.children) {
    if (child != json.children.front()) out += ',';
    if (object) out += quoted(child->key) + ':';
    text_into(out, *child);
  }
  out += object ? '}' : ']';
}

std::size_t number_of(const Json& child) {
  const auto& children = child.parent->children;
  // Elements are in the order of the text, and a file may have very many of them.
  const auto found =
      std::lower_bound(children.begin(), children.end(), &child, [](const Json* a, const Json* b) {
        return std::tie(a->place.line, a->place.column) < std::tie(b->place.line, b->place.column);
      });
  return static_cast<std::size_t>(found - children.begin());
}

}  // namespace

const Json* Json::find(std::string_view name) const {
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const Json* child) { return child->key == name; });
  return found == children.end() || (*found)->is(Type::Null) ? nullptr : *found;
}

Json& Document::add(Json::Type type, const Json* parent) {
  auto& json = nodes_.emplace_back();
  json.type = type;
  json.parent = parent;
  return json;
}

std::string pointer_to(const Json& json) {
  std::vector<const Json*> way;
  for (const auto* at = &json; at->parent != nullptr; at = at->parent) way.push_back(at);
  std::string pointer;
  for (auto at = way.rbegin(); at != way.rend() && pointer.size() < kPointer; ++at) {
    pointer += '/';
    if ((*at)->parent->is(Json::Type::Array)) {
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

std::string compact(const Json& json) {
  std::string out;
  text_into(out, json);
  return out;
}

bool stands_in(const Json& json, const Json& object) {
  const auto* at = &json;
  while (at != nullptr && at != &object) at = at->parent;
  return at == &object;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  escape_into(out, text, true);
  return out + '"';
}

std::string one_line(std::string_view text) {
  std::string out;
  escape_into(out, shortened(text, kLine), false);
  return text.size() > kLine ? out + "..." : out;
}

std::string described(const Json& json) {
  switch (json.type) {
    case Json::Type::Array: return "an array";
    case Json::Type::Object: return "an object";
    case Json::Type::String: {
      const auto text = quoted(shortened(json.text, kQuoted));
      return json.text.size() > kQuoted ? text + "..." : text;
    }
    case Json::Type::Number:
      return std::string(json.text.substr(0, kQuoted)) + (json.text.size() > kQuoted ? "..." : "");
    case Json::Type::Null:
    case Json::Type::Boolean: break;
  }
  return compact(json);
}

void Report::error(const Json& at, std::string message) {
  at.bad = true;
  add(at.place, &at, std::move(message), false);
}

void Report::error_at_key(const Json& at, std::string message) {
  at.bad = true;
  add(at.key_place, &at, std::move(message), false);
}

void Report::warn(const Json& at, std::string message) {
  add(at.place, &at, std::move(message), true);
}

void Report::error(Place place, const Json* inside, std::string message) {
  add(place, inside, std::move(message), false);
}

void Report::error(Place place, std::string pointer, std::string message) {
  add(place, std::move(pointer), std::move(message), false);
}

void Report::warn(Place place, std::string pointer, std::string message) {
  add(place, std::move(pointer), std::move(message), true);
}

std::string Report::suggestion(std::string_view word,
                               std::span<const std::string_view> names) const {
  return full() ? std::string() : did_you_mean(word, names);
}

std::string Report::suggestion_or_all(std::string_view word,
                                      std::span<const std::string_view> names) const {
  auto text = suggestion(word, names);
  if (!text.empty() || full()) return text;
  for (const auto name : names) text += (text.empty() ? "; there are: " : ", ") + std::string(name);
  return text;
}

// A pointer is worked out only for what is kept: very many may be asked for.
void Report::add(Place place, const Json* at, std::string message, bool warning) {
  const auto named = at != nullptr && !full();
  add(place, named ? pointer_to(*at) : std::string(), std::move(message), warning);
}

void Report::add(Place place, std::string pointer, std::string message, bool warning) {
  failed_ = failed_ || !warning;
  if (full()) {
    more_ = true;
    return;
  }
  auto& problem = problems_.emplace_back();
  problem.file = file_;
  problem.line = place.line;
  problem.column = place.column;
  problem.pointer = std::move(pointer);
  problem.message = std::move(message);
  problem.warning = warning;
}

std::vector<Problem> Report::take() {
  const auto key = [](const Problem& p) {
    return std::tie(p.line, p.column, p.pointer, p.message);
  };
  std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  problems_.erase(std::unique(problems_.begin(), problems_.end(),
                              [&](const Problem& a, const Problem& b) { return key(a) == key(b); }),
                  problems_.end());
  if (more_) {
    auto last = problems_.back();
    last.message = "there are more problems than these";
    last.pointer.clear();
    last.warning = !failed_;
    problems_.push_back(std::move(last));
  }
  return std::exchange(problems_, {});
}

}  // namespace httpretry::policy_file
