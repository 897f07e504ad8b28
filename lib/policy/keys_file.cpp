// The keys of a file and of its endpoints; and how a table is used.
#include "lib/policy/keys.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <algorithm>
#include <array>

namespace httpretry::policy_file {
namespace {

using JsonType = JsonNode::Type;

// What the loader of the file reads: the table knows only its schema.
class LoaderType final : public Type {
 public:
  constexpr explicit LoaderType(OrderedJson (*make)()) : schema_(make) {}
  bool read(const JsonNode& /*json*/, void* /*field*/, Problems& /*problems*/) const override {
    return true;
  }
  [[nodiscard]] OrderedJson write(const void* /*field*/) const override { return {}; }
  [[nodiscard]] OrderedJson schema() const override { return schema_(); }

 private:
  OrderedJson (*schema_)();
};

constexpr std::string_view kSchemes[] = {"http", "https"};

// Like Text, for a pattern, whose empty parts are errors of the pattern.
class PatternText final : public TypeOf<std::optional<std::string>> {
 public:
  constexpr explicit PatternText(const Words& words = {}) : words_(words) {}
  [[nodiscard]] OrderedJson schema() const override {
    return words_.size() == 0 ? schema_name() : words_.schema();
  }

 protected:
  std::optional<Field> parse(const JsonNode& json, Problems& problems) const override {
    if (words_.size() > 0 && !words_.parse(json, problems)) return std::nullopt;
    if (!expect(json, JsonType::String, "a string", problems)) return std::nullopt;
    return std::make_optional(Field(json.text));
  }
  [[nodiscard]] OrderedJson print(const Field& value) const override {
    return value ? OrderedJson(*value) : OrderedJson();
  }

 private:
  Words words_;
};

constexpr PatternText kPart;
constexpr PatternText kScheme{Words(kSchemes)};
constexpr Number<std::uint16_t> kPortNumber(1, 65535);
constexpr Optional kPort(kPortNumber);
constexpr Strings kMethods(Strings::Of::Methods);

constexpr Key kMatchKeys[] = {
    key<&EndpointPattern::scheme>("scheme", kScheme).not_null(),
    key<&EndpointPattern::host>(
        "host", kPart, "A name, \"*.suffix\" for one or more labels, \"[IPv6]\", or \"*\".")
        .not_null(),
    key<&EndpointPattern::port>("port", kPort).not_null(),
    key<&EndpointPattern::path>(
        "path", kPart,
        "Segments: literal, \"*\" or \"{name}\" for any one, a final \"**\" for the rest.")
        .not_null(),
    key<&EndpointPattern::methods>("methods", kMethods).not_null(),
};
constexpr Shape kMatch{.name = "match", .keys = kMatchKeys};

OrderedJson policy_schema_reference() { return schema_reference(policy_shape().name); }

constexpr LoaderType kName(schema_name);
constexpr LoaderType kAnyText([]() -> OrderedJson { return {{"type", "string"}}; });
constexpr LoaderType kVersion([]() -> OrderedJson { return {{"const", 1}}; });
constexpr LoaderType kMatchType([] { return schema_reference(kMatch.name); });
constexpr LoaderType kNameOrPolicy([] {
  return schema_either(schema_name(), policy_schema_reference());
});
constexpr LoaderType kPolicies([]() -> OrderedJson {
  return {{"type", "object"},
          {"propertyNames", {{"minLength", 1}}},
          {"additionalProperties", policy_schema_reference()}};
});
constexpr LoaderType kEndpoints([] { return schema_items(schema_reference("endpoint")); });

constexpr Key kEndpointKeys[] = {
    loader_key("name", kName, "For reports.").not_null(),
    loader_key("match", kMatchType,
               "Which requests; the most specific entry wins, whatever their order.")
        .needed()
        .not_null(),
    loader_key("policy", kNameOrPolicy, "The name of a policy, or one.").needed().not_null(),
};
constexpr Shape kEndpoint{.name = "endpoint", .keys = kEndpointKeys};

constexpr Key kFileKeys[] = {
    loader_key("$schema", kAnyText, "For editors.").not_null(),
    loader_key("version", kVersion, "Of this format: 1.").needed().not_null(),
    loader_key("default", kNameOrPolicy,
               "For requests that no entry matches: a policy's name, or a policy (standard)."),
    loader_key("policies", kPolicies, "Policies by name.").not_null(),
    loader_key("endpoints", kEndpoints, "Which requests get which policy.").not_null(),
};
constexpr Shape kFile{.name = "file", .keys = kFileKeys};

}  // namespace

const Shape& file_shape() { return kFile; }
const Shape& endpoint_shape() { return kEndpoint; }
const Shape& match_shape() { return kMatch; }

}  // namespace httpretry::policy_file
