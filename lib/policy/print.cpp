// A set of policies as a file that gives the same set.
#include "lib/policy/policy_set_data.hpp"

namespace httpretry {
namespace policy_file {
namespace {

OrderedJson reference(const ResolvedPolicy& resolved) {
  return resolved.name.empty() ? write_policy(resolved) : OrderedJson(resolved.name);
}

bool is_built_in(const ResolvedPolicy& resolved) {
  return resolved.name.empty() && resolved.preset == standard().preset &&
         *resolved.policy == *standard().policy;
}

}  // namespace

OrderedJson write_policy(const ResolvedPolicy& resolved) {
  OrderedJson json;
  if (resolved.preset != "standard" && loaded_preset(resolved.preset) != nullptr) {
    json["preset"] = resolved.preset;
  }
  json.update(write_object(policy_shape(), resolved.policy.get()));
  return json;
}

}  // namespace policy_file

std::string PolicySet::print() const {
  using namespace policy_file;
  OrderedJson file = {{"version", 1}};
  if (!is_built_in(data_->fallback)) file["default"] = reference(data_->fallback);
  for (const auto& policy : data_->policies) file["policies"][policy.name] = write_policy(policy);
  for (const auto& entry : data_->entries) {
    OrderedJson json;
    if (entry.named) json["name"] = entry.resolved.endpoint;
    json["match"] = write_object(match_shape(), &entry.pattern);
    json["policy"] = reference(entry.resolved);
    file["endpoints"].push_back(std::move(json));
  }
  return json_text(file, 3) + "\n";
}

}  // namespace httpretry
