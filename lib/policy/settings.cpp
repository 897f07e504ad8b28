// Settings of a command line, laid over the policies of a set.
#include "lib/policy/policy_set_data.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace httpretry {
namespace policy_file {
namespace {

using Setting = std::pair<std::string, std::string>;  // "backoff.initial", its value

// One layer of all settings; a later one replaces an earlier one.
const JsonNode& layer_of(std::span<const Setting> settings, JsonTree& tree) {
  auto layer = OrderedJson::object();
  for (const auto& [key, text] : settings) set_dotted(layer, key, text);
  return tree.add(layer);
}

class Overlay {
 public:
  Overlay(std::span<const Setting> settings, std::string_view name)
      : problems_(std::string(name)),
        origin_{std::string(name), false, nullptr},
        layer_(layer_of(settings, tree_)) {
    read_members(layer_, kPolicy, nullptr, problems_);
    if (const auto* const extends = layer_.find("extends")) {
      problems_.error(*extends, "a setting lies over every policy; it cannot extend one");
    }
    preset_ = preset_of(layer_, problems_);
  }

  // The policy with the settings over it. Entries that share one share it afterwards.
  void lay(ResolvedPolicy& resolved) {
    auto& made = made_[resolved.policy.get()];
    if (!made.policy) made = laid(resolved);
    resolved.policy = made.policy;
    resolved.values = made.values;
    resolved.preset = made.preset;
  }

  [[nodiscard]] bool failed() const { return problems_.failed(); }
  // "--set backoff.initial: …"
  Error error() {
    auto problems = problems_.take();
    for (auto& problem : problems) {
      auto key = one_line(std::exchange(problem.pointer, {})).erase(0, 1);
      std::replace(key.begin(), key.end(), '/', '.');
      if (!key.empty()) problem.file += " " + key;
    }
    return Error(Errc::InvalidRequest, error_lines(problems));
  }

 private:
  ResolvedPolicy laid(const ResolvedPolicy& resolved) {
    const LayerOrigin before{"built in", false, &resolved.values};
    auto layered = built_in();
    lay_over(layered, tree_.add(write_object(kPolicy, resolved.policy.get())),
             kPolicy, before);
    if (preset_ != nullptr) lay_preset_over(layered, *preset_->tree->root, preset_->origin);
    lay_over(layered, layer_, kPolicy, origin_);
    ValuePool pool;  // the origins are this function's
    auto result = read_policy(layered, layer_, problems_, pool);
    check_policy(layered, *result.policy, layer_, problems_);
    result.preset = preset_ != nullptr ? layer_.find("preset")->text : resolved.preset;
    return result;
  }

  Problems problems_;
  LayerOrigin origin_;
  JsonTree tree_;
  const JsonNode& layer_;
  const LoadedPreset* preset_ = nullptr;
  std::map<const RetryPolicy*, ResolvedPolicy> made_;
};

}  // namespace
}  // namespace policy_file

Result<PolicySet> with_settings(const PolicySet& set,
                                std::span<const std::pair<std::string, std::string>> settings,
                                std::string_view origin) {
  policy_file::Overlay overlay(settings, origin);
  auto data = std::make_shared<PolicySet::Data>(set.data());
  overlay.lay(data->fallback);
  for (auto& policy : data->policies) overlay.lay(policy);
  for (auto& entry : data->entries) overlay.lay(entry.resolved);
  if (overlay.failed()) return overlay.error();
  return PolicySet(std::move(data));
}

}  // namespace httpretry
