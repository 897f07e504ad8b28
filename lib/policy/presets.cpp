#include <httpretry/policy/presets.hpp>

#include "lib/policy/keys.hpp"
#include "lib/policy/preset_parts.hpp"

#include <algorithm>
#include <deque>

namespace httpretry {
namespace policy_file {
namespace {

void set(OrderedJson& json, const char* key, std::string_view text) {
  if (!text.empty()) json[key] = OrderedJson::parse(text);
}

OrderedJson whole(const PresetParts& parts) {
  OrderedJson json;
  set(json, "max_attempts", parts.max_attempts);
  set(json, "max_elapsed_time", parts.max_elapsed_time);
  set(json, "elapsed_rule", parts.elapsed_rule);
  set(json, "backoff", parts.backoff);
  set(json, "throttle_backoff", parts.throttle_backoff);
  auto& retry_on = json["retry_on"];
  set(retry_on, "statuses", parts.statuses);
  set(retry_on, "throttle_statuses", parts.throttle_statuses);
  set(retry_on, "error_codes", parts.error_codes);
  set(retry_on, "transport", parts.transport);
  set(retry_on, "pending", parts.pending);
  set(json, "repeat", parts.repeat);
  set(json, "budget", parts.budget);
  set(json, "server_delay", parts.server_delay);
  set(json, "adaptive", parts.adaptive);
  return json;
}

// They refer to texts that live as long as the program.
class PresetList {
 public:
  PresetList() {
    // The numbers of `standard` are those of a RetryPolicy that nobody has changed.
    const RetryPolicy standard;
    add("standard",
        "the default: full jitter, four attempts within a minute, a retry budget per host",
        write_object(policy_shape(), &standard));
    for (const auto parts : {client_presets(), textbook_presets()}) {
      for (const auto& preset : parts) add(preset.name, preset.description, whole(preset));
    }
  }
  [[nodiscard]] std::span<const Preset> all() const { return presets_; }

 private:
  void add(std::string_view name, std::string_view description, const OrderedJson& json) {
    presets_.push_back({name, description, texts_.emplace_back(json_text(json, 1))});
  }
  std::deque<std::string> texts_;
  std::vector<Preset> presets_;
};

}  // namespace
}  // namespace policy_file

std::span<const Preset> presets() {
  static const auto* const list = new policy_file::PresetList;
  return list->all();
}

const Preset* find_preset(std::string_view name) {
  const auto all = presets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Preset& preset) { return preset.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace httpretry
