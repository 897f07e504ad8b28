// httpretry policy explain FILE METHOD URL: shows the endpoint that wins, why others that match or
// nearly match lose, and the values of the policy with their sources.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"
#include "plan/simulated_call.hpp"
#include "plan/table.hpp"
#include "policy/explain_text.hpp"

#include "lib/core/policy/detail/warnings.hpp"

#include <httpretry/client/report.hpp>

#include <algorithm>

namespace httpretry::cli {
namespace {

std::string or_null(const std::string& text) { return text.empty() ? "null" : quote_json(text); }

std::string json_text(const ResolvedPolicy& resolved) {
  auto text = "{\n  \"endpoint\": " + or_null(resolved.endpoint) +
              ",\n  \"policy\": " + or_null(resolved.name) + ",\n  \"values\": [";
  const char* separator = "\n";
  for (const auto& value : resolved.values) {
    text += separator;
    text += "    {\"key\": " + quote_json(value.key) + ", \"value\": " + value.json +
            ", \"source\": " + quote_json(value.source) + "}";
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

std::string policy_of(const ResolvedPolicy& resolved) {
  const auto what = resolved.name.empty() ? "preset " + resolved.preset : "policy " + resolved.name;
  return what == resolved.source ? what : what + " (" + resolved.source + ")";
}

// Returns a line that warns of repeat: always, which a user may not expect, or "" if the policy
// does not repeat an unsafe request.
std::string unsafe_repeat_warning(const Request& request, const RetryPolicy& policy) {
  if (policy.repeat != Repeat::Always || request.repeatable()) return {};
  if (!policy.idempotency_key.empty()) return {};
  return "a " + request.method() +
         " that the server may have executed is sent again (repeat: always)\n";
}

// Returns the first line, which names the entry for the request.
std::string entry_text(const ResolvedPolicy& resolved,
                       const std::vector<PolicySet::Candidate>& candidates) {
  const auto policy = policy_of(resolved) + '\n';
  if (candidates.empty()) return "no endpoint matches; the default is used: " + policy;
  const auto& winner = candidates.front();
  return "endpoint " + resolved.endpoint + " (" + std::string(winner.source) + ") " +
         (candidates.size() == 1 ? "is the only one that matches: " : "wins: ") + policy;
}

std::string losers_text(const std::vector<PolicySet::Candidate>& candidates) {
  std::string text;
  for (const auto& candidate : candidates) {
    if (candidate.why_lost.empty()) continue;
    text += "endpoint " + candidate.resolved->endpoint + " (" + std::string(candidate.source) +
            ") loses: " + candidate.why_lost + '\n';
  }
  return text;
}

// Returns the values of a policy as a table with the columns key, value and source:
//
//   max_attempts          5      policy.json:3:21
//   backoff.max_interval  "30s"  preset standard
//
// A value of more than kMostWidth characters does not widen its column for the other rows; it only
// moves its own source to the right.
std::string values_text(const std::vector<PolicyValue>& values) {
  constexpr std::size_t kMostWidth = 40;
  constexpr std::size_t kGap = 2;  // between two columns
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (const auto& value : values) {
    key_width = std::max(key_width, value.key.size());
    const auto width = value.json.size();
    if (width <= kMostWidth) value_width = std::max(value_width, width);
  }
  std::string text;
  for (const auto& value : values) {
    const auto padding = std::max(value_width, value.json.size()) - value.json.size();
    text += "  " + value.key + std::string(key_width - value.key.size() + kGap, ' ') + value.json +
            std::string(padding + kGap, ' ') + value.source + '\n';
  }
  return text;
}

// Returns the values that differ from those of the preset.
std::vector<PolicyValue> changed_values(const ResolvedPolicy& resolved) {
  const auto preset = resolve_preset(resolved.preset).value();
  std::vector<PolicyValue> changed;
  for (const auto& value : resolved.values) {
    const auto* const preset_value = preset.values.find(value.key);
    if (preset_value == nullptr || preset_value->json != value.json) changed.push_back(value);
  }
  return changed;
}

std::string plan_for_503(const PolicySet& set, const Request& request) {
  std::string stopped;
  const auto calls = simulate_extremes(
      {.policies = set, .request = request, .script = Script({Step(503)}), .random = {}}, stopped);
  const auto& policy = *policy_for(set, request).policy;
  auto text = "if every response is 503:\n" + table_of_ranges(policy, calls);
  return stopped.empty() ? text : text + "stopped " + stopped + '\n';
}

// Returns what `policy explain` prints in words: which entry of the policy file applies to the
// request, why other entries that match or nearly match do not, and the values of the policy that
// differ from its preset, the built-in policy that it is based on. With `show_all` (--all), it has
// every value, every entry that nearly matches, and the retries that would follow a 503.
std::string words_text(const PolicySet& set, const Request& request, bool show_all) {
  const auto& url = *request.parsed_url();
  const auto& resolved = policy_for(set, request);
  // The entries that match, with the winner first, and those that fail only one condition.
  const auto candidates = set.candidates(request.method(), url, request.headers());
  const auto misses = set.near_misses(request.method(), url, request.headers());
  auto text = entry_text(resolved, candidates) + losers_text(candidates) +
              near_misses_text(misses, show_all ? misses.size() : kMostNearMisses,
                               /*hint=*/"; --all shows them");
  if (show_all) {
    text += values_text({resolved.values.begin(), resolved.values.end()});
  } else {
    const auto changed = changed_values(resolved);
    text += values_text(changed) + (changed.empty() ? "  all values" : "  all other values") +
            " are those of the preset " + resolved.preset + "; --all shows them\n";
  }
  for (const auto& warning : detail::policy_file::warnings_of(set, resolved)) {
    text += to_string(warning) + '\n';
  }
  text += unsafe_repeat_warning(request, *resolved.policy);
  text += held_back_text(resolved, request);  // the limits that can delay the request, and hedges
  return show_all ? text + plan_for_503(set, request) : text;
}

struct ExplainOptions {
  std::vector<std::string> headers;
  std::string format = "words";
  bool all = false;
};

FlagTable explain_flags(ExplainOptions& to) {
  return {
      {"Options",
       {header_flag(to.headers),
        {'\0', "all", "", "every value and near miss, and what happens after a 503",
         enable(to.all)},
        {'\0', "format", "words|json", "the output: words (the default) or JSON", store(to.format)},
        help_flag()}}};
}

}  // namespace

FlagTable policy_explain_table() { return unused_table<ExplainOptions>(explain_flags); }

int policy_explain(const Args& args) {
  ExplainOptions options;
  const auto operands = parse(args, explain_flags(options));
  if (operands.size() != 3) throw UsageError("policy explain needs FILE METHOD URL");
  PolicyChoice choice;
  choice.file = operands[0];
  const auto set = chosen_policies(choice);
  const auto request = plain_request(operands[1], operands[2], options.headers);
  write_stdout(options.format == "json" ? json_text(policy_for(set, request))
                                        : words_text(set, request, options.all));
  return kOk;
}

}  // namespace httpretry::cli
