// The JSON Schema of the file, from the tables of keys.
#include "lib/policy/keys.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <map>

namespace httpretry {
namespace policy_file {
namespace {

OrderedJson property(const Key& key) {
  OrderedJson json = OrderedJson::object();
  if (!key.about.empty()) json["description"] = key.about;
  auto value = key.type->schema();
  json.update(key.nullable ? schema_either(std::move(value), {{"type", "null"}}) : value);
  return json;
}

OrderedJson rule_when(OrderedJson conditions, OrderedJson then) {
  auto required = OrderedJson::array();
  for (const auto& [key, value] : conditions.items()) required.push_back(key);
  return {{"if", {{"properties", std::move(conditions)}, {"required", std::move(required)}}},
          {"then", std::move(then)}};
}

// An object of that kind: which keys it may have, and which it needs.
OrderedJson kind_rule(const Shape& shape, std::size_t kind) {
  const auto kinds = Mask{1} << kind;
  auto names = OrderedJson::array();
  auto needed = OrderedJson::array();
  auto own = OrderedJson::object();
  for (const auto& key : shape.keys) {
    if ((key.kinds & kinds) == 0) continue;
    names.push_back(key.name);
    if (key.jitters != kAll) continue;
    if (key.required) needed.push_back(key.name);
    if (shape.find(key.name) != &key) own[key.name] = key.type->schema();
  }
  OrderedJson then = {{"propertyNames", {{"enum", std::move(names)}}}};
  if (!needed.empty()) then["required"] = std::move(needed);
  if (!own.empty()) then["properties"] = std::move(own);
  return rule_when({{"kind", {{"const", shape.kinds[kind]}}}}, std::move(then));
}

// Of that kind and jitter: which more it needs; null where none.
OrderedJson jitter_rule(const Shape& shape, std::size_t kind, std::size_t jitter) {
  auto needed = OrderedJson::array();
  for (const auto& key : shape.keys) {
    const auto belongs = (key.kinds & (Mask{1} << kind)) != 0 && key.jitters != kAll &&
                         (key.jitters & (Mask{1} << jitter)) != 0;
    if (belongs && key.required) needed.push_back(key.name);
  }
  if (needed.empty()) return {};
  return rule_when(
      {{"kind", {{"const", shape.kinds[kind]}}}, {"jitter", {{"const", shape.jitters[jitter]}}}},
      {{"required", std::move(needed)}});
}

OrderedJson kind_rules(const Shape& shape) {
  auto rules = OrderedJson::array();
  for (std::size_t kind = 0; kind < shape.kinds.size(); ++kind) {
    if (shape.kinds[kind].empty()) continue;
    rules.push_back(kind_rule(shape, kind));
    for (std::size_t jitter = 0; jitter < shape.jitters.size(); ++jitter) {
      auto rule = jitter_rule(shape, kind, jitter);
      if (!rule.is_null()) rules.push_back(std::move(rule));
    }
  }
  return rules;
}

OrderedJson object_schema(const Shape& shape) {
  OrderedJson schema = {{"type", "object"}, {"additionalProperties", false}};
  auto required = OrderedJson::array();
  auto properties = OrderedJson::object();
  for (const auto& key : shape.keys) {
    if (shape.find(key.name) != &key) continue;
    properties[key.name] = property(key);
    // What may come from a layer below is not needed in this one.
    if (key.required && !key.nullable) required.push_back(key.name);
  }
  if (!required.empty()) schema["required"] = std::move(required);
  if (&shape == &match_shape()) schema["minProperties"] = 1;
  if (&shape == &rule_shape()) {
    for (const auto* const name : {"json", "header", "xml"}) {
      schema["oneOf"].push_back({{"required", OrderedJson::array({name})}});
    }
  }
  if (auto rules = kind_rules(shape); !rules.empty()) schema["allOf"] = std::move(rules);
  schema["properties"] = std::move(properties);
  return schema;
}

void define(const Shape& shape, std::map<std::string_view, OrderedJson>& definitions) {
  if (!definitions.try_emplace(shape.name).second) return;
  definitions[shape.name] = object_schema(shape);
  for (const auto& key : shape.keys) {
    if (const auto* const inner = key.type->shape()) define(*inner, definitions);
  }
}

std::string schema() {
  std::map<std::string_view, OrderedJson> definitions;
  for (const auto* const shape :
       {&policy_shape(), &rule_shape(), &endpoint_shape(), &match_shape()}) {
    define(*shape, definitions);
  }
  OrderedJson file = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                      {"title", "httpretry policy file, version 1"}};
  file.update(object_schema(file_shape()));
  for (auto& [name, definition] : definitions) file["definitions"][name] = std::move(definition);
  return json_text(file, 1) + "\n";
}

}  // namespace
}  // namespace policy_file

std::string_view policy_schema() {
  static const auto* const text = new std::string(policy_file::schema());
  return *text;
}

}  // namespace httpretry
