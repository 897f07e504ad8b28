// policy explain FILE METHOD URL: which entry wins, which others match or nearly do, and why they
// lose, each effective value with its source, and what would happen at 503.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "plan/plan_table.hpp"
#include "plan/played.hpp"
#include "policy/policies.hpp"

#include <httpretry/client/report.hpp>

#include <unistd.h>
#include <algorithm>
#include <span>

namespace httpretry::cli {
namespace {

std::string or_null(const std::string& text) { return text.empty() ? "null" : quote_json(text); }

std::string in_json(const ResolvedPolicy& resolved) {
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

// A file may have hundreds of entries for one host.
constexpr std::size_t kMostMisses = 10;

std::string in_words(const ResolvedPolicy& resolved,
                     const std::vector<PolicySet::Candidate>& candidates,
                     const std::vector<PolicySet::Candidate>& near_misses) {
  auto text = resolved.endpoint.empty() ? "no endpoint matches: the default, "
                                        : "endpoint " + resolved.endpoint + " wins: ";
  text += policy_of(resolved) + '\n';
  for (const auto& candidate : candidates) {
    if (candidate.why_lost.empty()) continue;
    text += "endpoint " + candidate.resolved->endpoint + " loses: " + candidate.why_lost + '\n';
  }
  const auto shown = std::min(near_misses.size(), kMostMisses);
  for (const auto& miss : std::span(near_misses).first(shown)) {
    text += "endpoint " + miss.resolved->endpoint + " does not match: " + miss.why_lost + '\n';
  }
  if (shown < near_misses.size()) {
    text += std::to_string(near_misses.size() - shown) + " more do not match\n";
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

std::string at_503(const PolicySet& set, const Request& request) {
  std::string cut_short;
  const auto played = play_extremes({set, request, Script({Step(503)}), {}}, cut_short);
  const auto& policy = *set.find(request.method(), *request.parsed_url()).policy;
  auto text =
      "where each answer is 503:\n" + table_of_ranges(policy, played[0], played[1], played[2]);
  return cut_short.empty() ? text : text + "stopped " + cut_short + '\n';
}

FlagTable table_of(std::string& format) {
  return {{"Options",
           {{'\0', "format", "words|json", "how it is said; words where left out",
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
  const auto words = parse(args, table_of(format));
  if (words.size() != 3) throw UsageError("policy explain takes FILE METHOD URL");
  PolicyChoice choice;
  choice.file = words[0];
  const auto set = chosen_policies(choice);
  const auto request = plain_request(words[1], words[2]);
  const auto& url = *request.parsed_url();
  const auto& resolved = set.find(request.method(), url);
  const auto text = format == "json" ? in_json(resolved)
                                     : in_words(resolved, set.candidates(request.method(), url),
                                                set.near_misses(request.method(), url)) +
                                           at_503(set, request);
  write_all(STDOUT_FILENO, text, -1, "standard output");
  return kOk;
}

}  // namespace httpretry::cli
