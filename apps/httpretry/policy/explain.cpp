// policy explain FILE METHOD URL: which endpoint wins, which others match or nearly match and why
// they lose, each value with its source, and what would happen if every response were 503.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"
#include "plan/simulated_call.hpp"
#include "plan/table.hpp"

#include <httpretry/client/report.hpp>

#include <unistd.h>
#include <algorithm>
#include <span>

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

// A file may have hundreds of endpoints for one host.
constexpr std::size_t kMostNearMisses = 10;

// What a user may not expect of a policy.
std::string repeat_text(const Request& request, const RetryPolicy& policy) {
  if (policy.repeat != Repeat::Always || request.repeatable()) return {};
  if (!policy.idempotency_key.empty()) return {};
  return "a " + request.method() +
         " that the server may have executed is sent again (repeat: always)\n";
}

std::string words_text(const ResolvedPolicy& resolved,
                       const std::vector<PolicySet::Candidate>& candidates,
                       const std::vector<PolicySet::Candidate>& near_misses) {
  auto text = resolved.endpoint.empty() ? "no endpoint matches; the default is used: "
                                        : "endpoint " + resolved.endpoint + " wins: ";
  text += policy_of(resolved) + '\n';
  for (const auto& candidate : candidates) {
    if (candidate.why_lost.empty()) continue;
    text += "endpoint " + candidate.resolved->endpoint + " loses: " + candidate.why_lost + '\n';
  }
  const auto shown = std::min(near_misses.size(), kMostNearMisses);
  for (const auto& miss : std::span(near_misses).first(shown)) {
    text += "endpoint " + miss.resolved->endpoint + " does not match: " + miss.why_lost + '\n';
  }
  if (shown < near_misses.size()) {
    text += std::to_string(near_misses.size() - shown) + " more endpoints do not match\n";
  }
  std::size_t keys = 0;
  std::size_t values = 0;
  for (const auto& value : resolved.values) {
    keys = std::max(keys, value.key.size());
    if (value.json.size() <= 40) values = std::max(values, value.json.size());
  }
  for (const auto& value : resolved.values) {
    const auto gap = std::max(values, value.json.size()) - value.json.size();
    text += "  " + value.key + std::string(keys - value.key.size() + 2, ' ') + value.json +
            std::string(gap + 2, ' ') + value.source + '\n';
  }
  return text;
}

std::string plan_for_503(const PolicySet& set, const Request& request) {
  std::string stopped;
  const auto simulated = simulate_extremes({set, request, Script({Step(503)}), {}}, stopped);
  const auto& policy = *set.find(request.method(), *request.parsed_url(), request.headers()).policy;
  auto text = "if every response is 503:\n" +
              table_of_ranges(policy, simulated[0], simulated[1], simulated[2]);
  return stopped.empty() ? text : text + "stopped " + stopped + '\n';
}

FlagTable table_of(std::string& format) {
  return {{"Options",
           {{'\0', "format", "words|json", "the output: words (the default) or JSON",
             [&](const std::string& value) { format = value; }},
            help_flag()}}};
}

}  // namespace

FlagTable policy_explain_table() {
  static std::string unused;
  return table_of(unused);
}

int policy_explain(const Args& args) {
  std::string format = "words";
  const auto operands = parse(args, table_of(format));
  if (operands.size() != 3) throw UsageError("policy explain needs FILE METHOD URL");
  PolicyChoice choice;
  choice.file = operands[0];
  const auto set = chosen_policies(choice);
  const auto request = plain_request(operands[1], operands[2]);
  const auto& url = *request.parsed_url();
  const auto& resolved = set.find(request.method(), url, request.headers());
  const auto text =
      format == "json"
          ? json_text(resolved)
          : words_text(resolved, set.candidates(request.method(), url, request.headers()),
                       set.near_misses(request.method(), url)) +
                repeat_text(request, *resolved.policy) + plan_for_503(set, request);
  write_stdout(text);
  return kOk;
}

}  // namespace httpretry::cli
