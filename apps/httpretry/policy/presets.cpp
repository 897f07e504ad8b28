// httpretry policy presets [NAME]: lists the presets, or prints one as a policy for a file.
#include "cli/commands.hpp"

#include "cli/exit_status.hpp"
#include "cli/output.hpp"

#include <httpretry/json/problem.hpp>

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/presets.hpp>

#include <algorithm>

namespace httpretry::cli {
namespace {

// Returns whether the preset repeats a POST that the server may have executed, without a key by
// which the server recognizes it.
bool repeats_posts(const Preset& preset) {
  const auto policy = resolve_preset(std::string(preset.name)).value().policy;
  return policy->repeat == Repeat::Always && policy->idempotency_key.empty();
}

std::string list() {
  std::size_t width = 0;
  for (const auto& preset : presets()) width = std::max(width, preset.name.size());
  std::string text;
  for (const auto& preset : presets()) {
    text += std::string(preset.name) + std::string(width - preset.name.size() + 2, ' ') +
            std::string(preset.description) + (repeats_posts(preset) ? "; repeats POSTs" : "") +
            '\n';
  }
  return text;
}

std::string one(const std::string& name) {
  if (const auto* preset = find_preset(name)) return std::string(preset->json) + '\n';
  std::vector<std::string_view> names;
  for (const auto& preset : presets()) names.push_back(preset.name);
  throw UsageError("there is no preset \"" + name + "\"" + did_you_mean(name, names));
}

}  // namespace

int policy_presets(const Args& args) {
  const auto names = parse(args, help_only());
  if (names.size() > 1) throw UsageError("policy presets takes at most one NAME");
  write_stdout(names.empty() ? list() : one(names.front()));
  return kOk;
}

}  // namespace httpretry::cli
