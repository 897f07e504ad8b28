// Settings of a command line, laid over the policies of a set; and presets on their own.
#include "lib/policy/checks.hpp"
#include "lib/policy/policy_set_data.hpp"
#include "lib/policy/setting_text.hpp"
#include "lib/policy/values.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace httpretry {
namespace policy_file {
namespace {

// "backoff.initial" of the value it names.
std::string dotted(std::string_view pointer) {
  std::string key(pointer.substr(std::min<std::size_t>(pointer.size(), 1)));
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

class Overlay {
 public:
  Overlay(std::span<const Setting> settings, std::string_view origin)
      : report_(std::string(origin)),
        source_{std::string(origin), false, nullptr},
        root_(object_of(settings, document_)) {
    check_object(root_, policy_shape(), report_);
    if (const auto* const extends = root_.find("extends")) {
      report_.error(*extends, "a setting lies over every policy; it cannot extend one");
    }
    const auto* const preset = root_.find("preset");
    if (preset == nullptr || !preset->is(JsonNode::Type::String)) return;
    preset_ = preset_json(preset->text);
    if (preset_ != nullptr) preset_name_ = preset->text;
    if (preset_ == nullptr) {
      report_.error(*preset,
                    "there is no preset " + described(*preset) + near_preset(preset->text));
    }
  }

  // The policy with the settings over it. Entries that share one share it afterwards.
  void lay(ResolvedPolicy& resolved) {
    auto& made = made_[resolved.policy.get()];
    if (!made.policy) made = laid(resolved);
    resolved.policy = made.policy;
    resolved.values = made.values;
    resolved.preset = made.preset;
  }

  [[nodiscard]] bool failed() const { return report_.failed(); }
  // "--set backoff.initial: …"
  Error error() {
    std::string lines;
    for (const auto& problem : report_.take()) {
      if (problem.warning) continue;
      if (!lines.empty()) lines += '\n';
      const auto key = one_line(dotted(problem.pointer));
      lines += problem.file + (key.empty() ? "" : " " + key) + ": " + problem.message;
    }
    return Error(Errc::InvalidRequest, std::move(lines));
  }

 private:
  ResolvedPolicy laid(const ResolvedPolicy& resolved) {
    auto& below = documents_.emplace_back();
    Problems none("");
    ResolvedPolicy plain = resolved;
    plain.preset = "standard";
    read_json(print_policy(plain, {}), below, none);
    const Source before{"built in", false, &resolved.values};
    auto layered = built_in();
    lay_over(layered, *below.root, policy_shape(), before);
    if (preset_ != nullptr) lay_preset_over(layered, *preset_, preset_source(preset_name_));
    lay_over(layered, root_, policy_shape(), source_);
    ResolvedPolicy result;
    result.policy = read_policy(layered, root_, report_);
    check_policy(layered, *result.policy, root_, report_);
    ValuePool pool;  // the sources are this function's
    result.values = values_of(layered, pool);
    result.preset = preset_ != nullptr ? preset_name_ : resolved.preset;
    return result;
  }

  Problems report_;
  Source source_;
  JsonTree document_;
  const JsonNode& root_;
  const JsonNode* preset_ = nullptr;
  std::string preset_name_;
  std::map<const RetryPolicy*, ResolvedPolicy> made_;
  std::deque<JsonTree> documents_;
};

}  // namespace
}  // namespace policy_file

Result<ResolvedPolicy> resolve_preset(std::string_view name) {
  if (policy_file::preset_json(name) != nullptr) return policy_file::resolved_preset(name);
  return Error(Errc::InvalidRequest,
               "there is no preset " + quoted_text(name) + policy_file::near_preset(name));
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
