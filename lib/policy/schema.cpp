// The JSON Schema of the file, out of the table of keys.
#include "lib/policy/fields.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <array>
#include <charconv>
#include <map>
#include <string>
#include <utility>

namespace httpretry {
namespace policy_file {
namespace {

constexpr std::string_view kStatus = "[1-5][0-9][0-9]";

std::string number(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// {"a": 1, …} of the members "\"a\": 1", ….
class Object {
 public:
  Object& add(std::string_view key, std::string_view json) {
    text_ += (text_.empty() ? "" : ", ") + quoted_text(key) + ": ";
    text_ += json;
    return *this;
  }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

class Array {
 public:
  Array& add(std::string_view json) {
    text_ += text_.empty() ? "" : ", ";
    text_ += json;
    return *this;
  }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string text() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

std::string of_type(std::string_view type) {
  return Object().add("type", quoted_text(type)).text();
}
std::string constant(std::string_view word) {
  return Object().add("const", quoted_text(word)).text();
}
std::string pattern(std::string_view text) {
  return Object().add("type", "\"string\"").add("pattern", quoted_text(text)).text();
}
std::string either(std::string_view one, std::string_view other) {
  return Object().add("anyOf", Array().add(one).add(other).text()).text();
}
std::string items(std::string_view of, bool some = false) {
  Object array;
  array.add("type", "\"array\"").add("items", of);
  if (some) array.add("minItems", "1");
  return array.text();
}
std::string reference(const Shape& shape) {
  return Object().add("$ref", quoted_text("#/definitions/" + std::string(shape.name))).text();
}
std::string name() { return Object().add("type", "\"string\"").add("minLength", "1").text(); }

std::string words(Words among) {
  Array list;
  for (const auto word : among) {
    if (!word.empty()) list.add(quoted_text(word));
  }
  return Object().add("enum", list.text()).text();
}

// A header's name, in any case.
std::string any_case(Words among) {
  std::string names;
  for (const auto word : among) {
    if (!names.empty()) names += "|";
    for (const auto c : word) {
      const auto letter = c >= 'a' && c <= 'z';
      names +=
          letter ? std::string{'[', static_cast<char>(c - 'a' + 'A'), c, ']'} : std::string(1, c);
    }
  }
  return either(words(among), pattern("^(" + names + ")$"));
}

std::string duration(const Key& key) {
  std::string units;
  for (const auto* const unit : {"h", "m", "s", "ms", "us", "ns"}) {
    units += "([0-9]+(\\.[0-9]+)?" + std::string(unit) + ")?";
  }
  const std::string_view some = key.least > 0 ? "(?=.*[1-9])" : "(?=.)";
  if (key.form == Form::Duration) return pattern("^" + std::string(some) + units + "$");
  return pattern("^(none|" + std::string(some) + units + ")$");
}

std::string ranged(std::string_view type, const Key& key) {
  return Object()
      .add("type", quoted_text(type))
      .add("minimum", number(key.least))
      .add("maximum", number(key.most))
      .text();
}

std::string statuses() {
  const auto one = std::string(kStatus);
  const auto ranges = pattern("^(!?([1-5]xx|" + one + "-" + one + ")|!" + one + ")$");
  const auto single =
      Object().add("type", "\"integer\"").add("minimum", "100").add("maximum", "599").text();
  return items(either(single, ranges));
}

std::string value_of(const Key& key) {
  switch (key.form) {
    case Form::Duration:
    case Form::Limit: return duration(key);
    case Form::Attempts: return either(ranged("integer", key), constant("unlimited"));
    case Form::Count:
    case Form::Port: return ranged("integer", key);
    case Form::Number:
    case Form::Thousandths: return ranged("number", key);
    case Form::Flag: return of_type("boolean");
    case Form::Word: return words(key.words);
    case Form::Statuses: return statuses();
    case Form::ErrorCodes: return items(either(words(family_words()), reference(rule_shape())));
    case Form::Transports: return items(words(key.words));
    case Form::Hints: return items(any_case(key.words));
    case Form::Values: return items(R"({"type": ["string", "number", "boolean"]})", true);
    case Form::Header: return pattern("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$");
    case Form::Pointer: return pattern("^/([^~]|~[01])*$");
    case Form::Element: return pattern("^/?[^\\s<>&\"'=?!/]+(/[^\\s<>&\"'=?!/]+)*$");
    case Form::Text: return key.words.empty() ? name() : words(key.words);
    case Form::Methods: return items(name(), true);
    case Form::Object: return reference(*key.shape);
    case Form::ObjectOrNone: return either(constant("none"), reference(*key.shape));
    case Form::Name: return key.name == "$schema" ? of_type("string") : name();
    case Form::Version: return R"({"const": 1})";
    case Form::Policy: return reference(policy_shape());
    case Form::PolicyRef: return either(name(), reference(policy_shape()));
    case Form::Policies:
      return Object()
          .add("type", "\"object\"")
          .add("propertyNames", R"({"minLength": 1})")
          .add("additionalProperties", reference(policy_shape()))
          .text();
    case Form::Endpoints: return items(reference(endpoint_shape()));
    case Form::Match: return reference(match_shape());
  }
  return "{}";
}

std::string property(const Key& key) {
  auto value = value_of(key);
  if (key.nullable) value = either(value, of_type("null"));
  if (!key.about.empty()) value.insert(1, "\"description\": " + quoted_text(key.about) + ", ");
  return value;
}

// Where the object names its kind (and jitter): which keys it may have, and which it needs.
std::string kind_rule(const Shape& shape, std::size_t kind, int jitter) {
  const auto kinds = Mask{1} << kind;
  const auto has_jitter = jitter >= 0;
  const auto jitters = has_jitter ? Mask{1} << static_cast<unsigned>(jitter) : kAll;
  Array names;
  Array needed;
  Object own;
  for (const auto& key : shape.keys) {
    if ((key.kinds & kinds) == 0) continue;
    names.add(quoted_text(key.name));
    const auto special = key.jitters != kAll;
    if (special != has_jitter || (key.jitters & jitters) == 0) continue;
    if ((key.required & kinds) != 0) needed.add(quoted_text(key.name));
    if (!has_jitter && shape.find(key.name) != &key) own.add(key.name, value_of(key));
  }
  if (has_jitter && needed.empty()) return {};
  Object condition;
  condition.add("kind", constant(shape.kinds[kind]));
  Array named;
  named.add("\"kind\"");
  if (has_jitter) {
    condition.add("jitter", constant(shape.jitters[static_cast<std::size_t>(jitter)]));
    named.add("\"jitter\"");
  }
  Object then;
  if (!has_jitter) then.add("propertyNames", Object().add("enum", names.text()).text());
  if (!needed.empty()) then.add("required", needed.text());
  if (!own.empty()) then.add("properties", own.text());
  const auto when =
      Object().add("properties", condition.text()).add("required", named.text()).text();
  return Object().add("if", when).add("then", then.text()).text();
}

std::string kind_rules(const Shape& shape) {
  Array rules;
  for (std::size_t kind = 0; kind < shape.kinds.size(); ++kind) {
    if (shape.kinds[kind].empty()) continue;
    rules.add(kind_rule(shape, kind, -1));
    for (std::size_t jitter = 0; jitter < shape.jitters.size(); ++jitter) {
      const auto rule = kind_rule(shape, kind, static_cast<int>(jitter));
      if (!rule.empty()) rules.add(rule);
    }
  }
  return rules.empty() ? std::string() : rules.text();
}

// Each key on a line of its own: people read it, too.
Object object_schema(const Shape& shape) {
  std::string properties;
  Array required;
  for (const auto& key : shape.keys) {
    if (shape.find(key.name) != &key) continue;
    properties += (properties.empty() ? "\n    " : ",\n    ") + quoted_text(key.name) + ": ";
    properties += property(key);
    // What may come from a layer below is not needed in this one.
    if (key.required != 0 && !key.nullable) required.add(quoted_text(key.name));
  }
  Object schema;
  schema.add("type", "\"object\"").add("additionalProperties", "false");
  if (!required.empty()) schema.add("required", required.text());
  if (&shape == &match_shape()) schema.add("minProperties", "1");
  if (&shape == &rule_shape()) {
    schema.add("oneOf",
               R"([{"required": ["json"]}, {"required": ["header"]}, {"required": ["xml"]}])");
  }
  if (const auto rules = kind_rules(shape); !rules.empty()) schema.add("allOf", rules);
  schema.add("properties", "{" + properties + "}");
  return schema;
}

void define(const Shape& shape, std::map<std::string_view, std::string>& definitions) {
  if (!definitions.try_emplace(shape.name).second) return;
  definitions[shape.name] = object_schema(shape).text();
  for (const auto& key : shape.keys) {
    if (key.shape != nullptr) define(*key.shape, definitions);
  }
}

std::string schema() {
  std::map<std::string_view, std::string> definitions;
  for (const auto* const shape :
       {&policy_shape(), &rule_shape(), &endpoint_shape(), &match_shape()}) {
    define(*shape, definitions);
  }
  std::string defined;
  for (const auto& [key, json] : definitions) {
    defined += (defined.empty() ? "\n  " : ",\n  ") + quoted_text(key) + ": " + json;
  }
  auto file = object_schema(file_shape());
  file.add("definitions", "{" + defined + "}");
  return "{\"$schema\": \"http://json-schema.org/draft-07/schema#\", "
         "\"title\": \"httpretry policy file, version 1\",\n" +
         file.text().substr(1) + "\n";
}

}  // namespace
}  // namespace policy_file

std::string_view policy_schema() {
  static const auto* const text = new std::string(policy_file::schema());
  return *text;
}

}  // namespace httpretry
