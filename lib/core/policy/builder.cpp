// PolicyBuilder and PolicySetBuilder set the members of the JSON of a policy file.
#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_import.hpp>
#include <httpretry/policy/policy_set.hpp>

#include "policy_set_data.hpp"

#include <algorithm>
#include <utility>

namespace httpretry {

using policy_file::Layer;

namespace {

// Returns the JSON of the layer for a change. Copies a layer that several builders share.
OrderedJson& writable_json(std::shared_ptr<Layer>& layer) {
  if (layer == nullptr) layer = std::make_shared<Layer>();
  if (layer.use_count() > 1) layer = std::make_shared<Layer>(*layer);
  return layer->json;
}

OrderedJson json_of(const std::shared_ptr<Layer>& layer) {
  return layer == nullptr ? OrderedJson::object() : layer->json;
}

// Returns an entry of "endpoints". `policy` is the policy itself or its name.
OrderedJson entry_of(const EndpointPattern& match, std::string_view name, OrderedJson policy) {
  OrderedJson entry;
  if (!name.empty()) entry["name"] = name;
  entry["match"] = policy_file::write_object(policy_file::kMatch, &match);
  entry["policy"] = std::move(policy);
  return entry;
}

}  // namespace

void policy_file::set_dotted(OrderedJson& object, std::string_view key, std::string_view text) {
  auto* inner = &object;
  for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    inner = &(*inner)[key.substr(0, dot)];
    if (!inner->is_object()) *inner = OrderedJson::object();
    key.remove_prefix(dot + 1);
  }
  JsonTree tree;
  Problems problems("");
  read_json(text, tree, problems);  // unlike nlohmann's parser, it enforces limits
  (*inner)[key] = problems.failed() ? OrderedJson(text) : OrderedJson::parse(text);
}

PolicyBuilder& PolicyBuilder::set(std::string_view key, std::string_view text) {
  policy_file::set_dotted(writable_json(layer_), key, text);
  return *this;
}

// Writes a value of a policy into the JSON that is being built. `field` is a member of `policy`,
// and must be one that a policy file has a key for. Its address tells which key that is.
PolicyBuilder& PolicyBuilder::say(const RetryPolicy& policy, const void* field) {
  const auto keys = policy_file::kPolicy.keys;
  auto* const object = const_cast<RetryPolicy*>(&policy);  // Key::field has no const form
  // Keys without a `field`, such as "preset", are stored in no member.
  const auto key = std::ranges::find_if(keys, [&](const policy_file::Key& one) {
    return one.field != nullptr && one.field(object) == field;
  });
  writable_json(layer_)[key->name] = key->type->write(field);
  return *this;
}

PolicyBuilder& PolicyBuilder::put(std::string_view key, std::string_view text) {
  writable_json(layer_)[key] = text;
  return *this;
}

std::string PolicyBuilder::json() const { return json_text(json_of(layer_), /*levels=*/1); }

PolicySetBuilder& PolicySetBuilder::policy(std::string_view name, const PolicyBuilder& policy) {
  // Appends the policy instead of assigning it, so that the reader reports a duplicate name.
  auto& policies = writable_json(layer_)["policies"];
  if (policies.is_null()) policies = OrderedJson::object();
  policies.get_ref<OrderedJson::object_t&>().emplace_back(name, json_of(policy.layer_));
  return *this;
}

PolicySetBuilder& PolicySetBuilder::endpoint(const EndpointPattern& match, std::string_view policy,
                                             std::string_view name) {
  writable_json(layer_)["endpoints"].push_back(entry_of(match, name, policy));
  return *this;
}

PolicySetBuilder& PolicySetBuilder::endpoint(const EndpointPattern& match,
                                             const PolicyBuilder& policy, std::string_view name) {
  writable_json(layer_)["endpoints"].push_back(entry_of(match, name, json_of(policy.layer_)));
  return *this;
}

PolicySetBuilder& PolicySetBuilder::fallback(std::string_view policy) {
  writable_json(layer_)["default"] = policy;
  return *this;
}

PolicySetBuilder& PolicySetBuilder::fallback(const PolicyBuilder& policy) {
  writable_json(layer_)["default"] = json_of(policy.layer_);
  return *this;
}

std::string PolicySetBuilder::json() const {
  OrderedJson file = {{"version", 1}};
  const auto members = json_of(layer_);
  for (const auto* const key : {"default", "policies", "endpoints"}) {
    if (members.contains(key)) file[key] = members[key];
  }
  return json_text(file, /*levels=*/2) + "\n";
}

// Reads the text of `json`, so that positions of problems and sources refer to it.
CheckedPolicies PolicySetBuilder::check(std::string_view origin) const {
  try {
    static_cast<void>(json_of(layer_).dump());  // throws if a string is not UTF-8
  } catch (const OrderedJson::type_error&) {
    CheckedPolicies checked;
    auto& problem = checked.problems.emplace_back();
    problem.file = origin;
    problem.message = "invalid UTF-8 in a string of the builder";
    return checked;
  }
  return check_policies(json(), origin);
}

Result<PolicySet> PolicySetBuilder::build(std::string origin) const {
  return policy_file::set_of(check(origin));
}

PolicySetBuilder PolicySet::builder() { return {}; }

Result<ImportedPolicies> policy_file::finish_import(const PolicySetBuilder& builder,
                                                    Problems& problems) {
  const bool failed = problems.failed();
  auto all_problems = problems.take();
  if (failed) return Error(Errc::InvalidRequest, error_lines(all_problems));
  // The import may still fail here, for example if the attempt timeout is over the call's timeout.
  auto built = builder.build("imported from " + problems.file());
  if (!built) return std::move(built.error());
  ImportedPolicies result(*std::move(built));
  result.json = result.policies.print();
  result.problems = std::move(all_problems);
  return result;
}

}  // namespace httpretry
