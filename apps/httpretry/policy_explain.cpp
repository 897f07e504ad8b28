// policy explain FILE METHOD URL: which entry wins, which lost and why, and each effective value
// with its source.
#include "commands.hpp"
#include "exit_status.hpp"
#include "output.hpp"
#include "policies.hpp"
#include "words.hpp"

#include <httpretry/report.hpp>

#include <unistd.h>
#include <algorithm>

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

std::string in_words(const ResolvedPolicy& resolved,
                     const std::vector<PolicySet::Candidate>& candidates) {
  auto text = resolved.endpoint.empty() ? "no endpoint matches: the default, "
                                        : "endpoint " + resolved.endpoint + " wins: ";
  text += policy_of(resolved) + '\n';
  for (const auto& candidate : candidates) {
    if (candidate.why_lost.empty()) continue;
    text += "endpoint " + candidate.resolved->endpoint + " loses: " + candidate.why_lost + '\n';
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
  const auto& method = words[1];
  const auto url =
      Url::parse(words[2].find("://") == std::string::npos ? "http://" + words[2] : words[2]);
  if (!url) throw UsageError("\"" + without_secrets(words[2]) + "\" is " + url.error().message);
  const auto& resolved = set.find(method, *url);
  write_all(STDOUT_FILENO,
            format == "json" ? in_json(resolved) : in_words(resolved, set.candidates(method, *url)),
            -1, "standard output");
  return kOk;
}

}  // namespace httpretry::cli
