// Settings of a command line, laid over the policies of a set; and presets on their own.
#include "lib/policy/policy_set_data.hpp"

#include <algorithm>
#include <map>

namespace httpretry {
namespace policy_file {
namespace {

using Setting = std::pair<std::string, std::string>;  // "backoff.initial", its value

// "backoff.initial" of the value it names.
std::string dotted(std::string_view pointer) {
  std::string key(pointer.substr(std::min<std::size_t>(pointer.size(), 1)));
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

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
    read_members(layer_, policy_shape(), nullptr, problems_);
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
    std::string lines;
    for (const auto& problem : problems_.take()) {
      if (problem.warning) continue;
      if (!lines.empty()) lines += '\n';
      const auto key = one_line(dotted(problem.pointer));
      lines += problem.file + (key.empty() ? "" : " " + key) + ": " + problem.message;
    }
    return Error(Errc::InvalidRequest, std::move(lines));
  }

 private:
  ResolvedPolicy laid(const ResolvedPolicy& resolved) {
    const LayerOrigin before{"built in", false, &resolved.values};
    auto layered = built_in();
    lay_over(layered, tree_.add(write_object(policy_shape(), resolved.policy.get())),
             policy_shape(), before);
    if (preset_ != nullptr) lay_preset_over(layered, *preset_->tree->root, preset_->origin);
    lay_over(layered, layer_, policy_shape(), origin_);
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

Result<ResolvedPolicy> resolve_preset(std::string_view name) {
  using namespace policy_file;
  if (loaded_preset(name) != nullptr) return resolved_preset(name);
  return Error(Errc::InvalidRequest, "there is no preset " + quoted_text(name) + near_preset(name));
}

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
