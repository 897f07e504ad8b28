// The keys of `match`.
#include "lib/policy/keys.hpp"

#include <httpretry/policy/endpoint.hpp>

namespace httpretry::policy_file {
namespace {

using JsonType = JsonNode::Type;

constexpr std::string_view kSchemeNames[] = {"http", "https"};
constexpr Words kSchemes(kSchemeNames);

constexpr Text kOneHost("a host");
constexpr List kHosts(kOneHost, "a string or an array of strings",
                      "an empty list fits nothing; left out, it is every host", true);

class HostType final : public Type {
 public:
  bool read(const JsonNode& json, void* field, Problems& problems) const override {
    std::vector<std::string> hosts;
    if (!kHosts.read(json, &hosts, problems)) return false;
    if (field == nullptr) return true;
    auto& pattern = *static_cast<EndpointPattern*>(field);
    pattern.host = hosts.front();
    pattern.more_hosts.assign(hosts.begin() + 1, hosts.end());
    return true;
  }
  [[nodiscard]] OrderedJson write(const void* field) const override {
    const auto& pattern = *static_cast<const EndpointPattern*>(field);
    if (!pattern.host) return {};
    auto hosts = pattern.more_hosts;
    hosts.insert(hosts.begin(), *pattern.host);
    return kHosts.write(&hosts);
  }
};

using Conditions = EndpointPattern::Conditions;

std::optional<Conditions> parse_conditions(const JsonNode& json, Problems& problems) {
  if (!expect(json, JsonType::Object, "an object", problems)) return std::nullopt;
  Conditions conditions;
  auto good = true;
  for (const auto* const member : json.children) {
    good = expect(*member, JsonType::String, "a string", problems) && good;
    conditions.emplace(member->key, member->text);
  }
  if (json.children.empty()) {
    problems.error(json, "an empty object holds for every request; leave it out");
    good = false;
  }
  return good ? std::optional(std::move(conditions)) : std::nullopt;
}

OrderedJson print_conditions(const Conditions& conditions) {
  return conditions.empty() ? OrderedJson() : OrderedJson(conditions);
}

constexpr Custom<Conditions> kConditions(parse_conditions, print_conditions);
// Unlike with Text, an empty string is kept: problems_of reports it.
constexpr Optional kPart(kAnyText);
using Part = std::optional<std::string>;
constexpr Custom<Part> kScheme(
    [](const JsonNode& json, Problems& problems) {
      const auto known = kSchemes.parse(json, problems).has_value();
      return known ? std::make_optional(Part(json.text)) : std::nullopt;
    },
    [](const Part& value) { return kPart.write(&value); });
constexpr HostType kHost;
constexpr Number<std::uint16_t> kPortNumber(1, 65535);
constexpr Optional kPort(kPortNumber);

constexpr Key kMatchKeys[] = {
    key<&EndpointPattern::scheme>("scheme", kScheme).not_null(),
    whole_key("host", kHost).not_null(),
    key<&EndpointPattern::port>("port", kPort).not_null(),
    key<&EndpointPattern::path>("path", kPart).not_null(),
    key<&EndpointPattern::methods>("methods", kMethods).not_null(),
    key<&EndpointPattern::headers>("headers", kConditions).not_null(),
    key<&EndpointPattern::query>("query", kConditions).not_null(),
};

}  // namespace

constinit const Shape kMatch{.name = "match", .keys = kMatchKeys};

}  // namespace httpretry::policy_file
