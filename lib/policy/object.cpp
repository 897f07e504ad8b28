// Uses the tables of keys: reads and writes objects, and makes the JSON Schema.
#include "lib/policy/keys.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <algorithm>
#include <map>

namespace httpretry {
namespace policy_file {
namespace {

using JsonType = JsonNode::Type;

std::string unknown_key(std::string_view name, const Shape& shape, const Problems& problems) {
  std::vector<std::string_view> names;
  for (const auto& key : shape.keys) {
    if (shape.find(key.name) == &key) names.push_back(key.name);
  }
  auto hint = problems.suggestion(name, names);
  if (hint.empty() && !problems.full()) {
    for (const auto one : names) hint += (hint.empty() ? "; there are: " : ", ") + std::string(one);
  }
  return "unknown key" + hint;
}

bool read_member(const JsonNode& member, const Key& key, void* target, Problems& problems) {
  if (key.nullable && member.is(JsonType::Null)) return true;
  const auto stored = target != nullptr && key.field != nullptr;
  return key.type->read(member, stored ? key.field(target) : nullptr, problems);
}

Mask mask_in(const Shape& shape, const Words& words, std::string_view name, void* object) {
  if (words.size() == 0) return kAll;
  const auto& key = *shape.find(name);
  return mask_of(words, key.type->write(key.field(object)).get<std::string>());
}

}  // namespace

Mask mask_of(const Words& words, std::string_view word) {
  const auto number = words.find(word);
  return number == words.size() ? kAll : Mask{1} << number;
}

const Key* Shape::find(std::string_view wanted, Mask among) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) {
    return key.name == wanted && (key.kinds & among) != 0;
  });
  return found == keys.end() ? nullptr : &*found;
}

bool read_members(const JsonNode& object, const Shape& shape, void* target, Problems& problems) {
  const auto* const kind = shape.kinds.size() == 0 ? nullptr : object.find("kind");
  const auto kinds = kind == nullptr ? kAll : mask_of(shape.kinds, kind->text);
  auto good = true;
  for (const auto* const member : object.children) {
    if (member->bad) good = false;  // a duplicate
    if (shape.find(member->key) == nullptr) {
      problems.error_at_key(*member, unknown_key(member->key, shape, problems));
      good = false;
    } else if (const auto* const key = shape.find(member->key, kinds)) {
      good = read_member(*member, *key, target, problems) && good;
    } else {
      problems.error_at_key(*member, not_of_kind(member->key, *kind));
      good = false;
    }
  }
  if (!good && shape.whole) object.bad = true;
  return good;
}

bool read_object(const JsonNode& json, const Shape& shape, void* target, std::string_view what,
                 Problems& problems) {
  if (!expect(json, JsonType::Object, what, problems)) return false;
  auto good = read_members(json, shape, target, problems);
  for (const auto& key : shape.keys) {
    if (!key.required || json.member(key.name) != nullptr) continue;
    problems.error(json, "missing key " + quoted_text(key.name));
    good = false;
  }
  return good;
}

OrderedJson write_object(const Shape& shape, const void* object) {
  auto* const target = const_cast<void*>(object);  // only read: Key::field has no const form
  const Traits traits{mask_in(shape, shape.kinds, "kind", target),
                      mask_in(shape, shape.jitters, "jitter", target)};
  auto json = OrderedJson::object();
  for (const auto& key : shape.keys) {
    if (key.field == nullptr || !traits.have(key)) continue;
    auto value = key.type->write(key.field(target));
    const auto same = !key.like.empty() && json.contains(key.like) && json[key.like] == value;
    if (!value.is_null() && !same) json[key.name] = std::move(value);
  }
  return json;
}

std::string not_of_kind(std::string_view key, const JsonNode& kind) {
  return quoted_text(key) + " does not belong to kind " + described(kind);
}

bool ObjectType::read(const JsonNode& json, void* field, Problems& problems) const {
  if (optional_ && json.is(JsonType::String) && json.text == "none") {
    if (field != nullptr) renew(field, true);
    return true;
  }
  return expect(json, JsonType::Object, optional_ ? "an object or \"none\"" : "an object",
                problems) &&
         read_members(json, shape_, field == nullptr ? nullptr : renew(field), problems);
}

OrderedJson ObjectType::write(const void* field) const {
  const auto* const there = object(const_cast<void*>(field));
  return there == nullptr ? OrderedJson("none") : write_object(shape_, there);
}

OrderedJson ObjectType::schema() const {
  auto reference = schema_reference(shape_.name);
  return optional_ ? schema_either({{"const", "none"}}, std::move(reference)) : reference;
}

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

// An object of that kind and jitter: which further keys it needs. Null if it needs none.
OrderedJson jitter_rule(const Shape& shape, std::size_t kind, std::size_t jitter) {
  auto needed = OrderedJson::array();
  const Traits traits{Mask{1} << kind, Mask{1} << jitter};
  for (const auto& key : shape.keys) {
    if (key.required && key.jitters != kAll && traits.have(key)) needed.push_back(key.name);
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
  if (&shape == &kMatch || &shape == &kTestExpect) schema["minProperties"] = 1;
  if (&shape == &kRule) {
    for (const auto* const name : {"json", "header", "xml"}) {
      schema["oneOf"].push_back({{"required", OrderedJson::array({name})}});
    }
  }
  if (&shape == &kTestStep) {
    for (const auto* const name : {"status", "fault"}) {
      schema["anyOf"].push_back({{"required", OrderedJson::array({name})}});
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

}  // namespace
}  // namespace policy_file

std::string_view policy_schema() {
  using namespace policy_file;
  static const auto* const text = [] {
    std::map<std::string_view, OrderedJson> definitions;
    for (const auto* const shape : {&kPolicy, &kRule, &kEndpoint, &kMatch, &kTest, &kTestRequest,
                                    &kTestStep, &kTestWait, &kTestExpect}) {
      define(*shape, definitions);
    }
    OrderedJson file = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                        {"title", "httpretry policy file, version 1"}};
    file.update(object_schema(kFile));
    for (auto& [name, definition] : definitions) file["definitions"][name] = std::move(definition);
    return new std::string(json_text(file, 1) + "\n");
  }();
  return *text;
}

}  // namespace httpretry
