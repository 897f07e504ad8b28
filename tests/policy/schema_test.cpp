// cmake/policy.schema.json against the tables of keys that the loader uses.
#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

#include <set>

using namespace httpretry;
using namespace httpretry::policy_file;

namespace {

using Names = std::set<std::string>;

Names names_in(const OrderedJson& schema, const char* list) {
  Names names;
  if (!schema.contains(list)) return names;
  for (const auto& [key, value] : schema[list].items()) {
    names.insert(schema[list].is_object() ? key : value.get<std::string>());
  }
  return names;
}

template <class Holds>
Names names_of(const Shape& shape, Holds holds) {
  Names names;
  for (const auto& key : shape.keys) {
    if (holds(key)) names.insert(std::string(key.name));
  }
  return names;
}

// Returns the rule of the schema for objects that meet `conditions`, which give "kind" and
// "jitter". Returns null if there is none.
OrderedJson rule_for(const OrderedJson& schema, const OrderedJson& conditions) {
  if (!schema.contains("allOf")) return {};
  for (const auto& rule : schema["allOf"]) {
    if (rule["if"]["properties"] == conditions) return rule["then"];
  }
  return {};
}

void check_kind(const OrderedJson& schema, const Shape& shape, std::size_t number) {
  OrderedJson conditions = {{"kind", {{"const", shape.kinds[number]}}}};
  CAPTURE(conditions.dump());
  const auto kind = Mask{1} << number;
  const auto rule = rule_for(schema, conditions);
  REQUIRE(rule.is_object());
  CHECK(names_in(rule["propertyNames"], "enum") ==
        names_of(shape, [&](const Key& key) { return (key.kinds & kind) != 0; }));
  CHECK(names_in(rule, "required") == names_of(shape, [&](const Key& key) {
          return key.required && key.jitters == kAll && (key.kinds & kind) != 0;
        }));
  for (std::size_t i = 0; i < shape.jitters.size(); ++i) {
    conditions["jitter"] = {{"const", shape.jitters[i]}};
    CAPTURE(conditions.dump());
    CHECK(names_in(rule_for(schema, conditions), "required") ==
          names_of(shape, [&](const Key& key) {
            return key.required && key.jitters != kAll && Traits{kind, Mask{1} << i}.have(key);
          }));
  }
}

void check_shape(const OrderedJson& file, const Shape& shape, Names& checked) {
  if (!checked.insert(std::string(shape.name)).second) return;
  CAPTURE(std::string(shape.name));
  const auto& schema = &shape == &kFile ? file : file["definitions"][std::string(shape.name)];
  CHECK(names_in(schema, "properties") == names_of(shape, [](const Key&) { return true; }));
  // A key that a lower layer may set is not required here.
  CHECK(names_in(schema, "required") ==
        names_of(shape, [](const Key& key) { return key.required && !key.nullable; }));
  CHECK(schema["additionalProperties"] == false);
  for (std::size_t kind = 0; kind < shape.kinds.size(); ++kind) {
    if (!shape.kinds[kind].empty()) check_kind(schema, shape, kind);
  }
  for (const auto& key : shape.keys) {
    const auto* const inner = key.type == nullptr ? nullptr : key.type->shape();
    if (inner != nullptr) check_shape(file, *inner, checked);
  }
}

}  // namespace

TEST_CASE("the schema has the keys of the loader, for each kind of object") {
  const auto file = OrderedJson::parse(policy_schema());
  Names checked;
  for (const auto* const shape :
       {&kFile, &kPolicy, &kRule, &kEndpoint, &kMatch, &kTest, &kTestRequest, &kTestStep,
        &kTestTime, &kTestWait, &kTestExpect}) {
    check_shape(file, *shape, checked);
  }
  checked.erase("file");
  CHECK(checked == names_in(file, "definitions"));
}
