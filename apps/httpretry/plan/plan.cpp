// plan: what would happen, without a network.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/words.hpp"
#include "plan/plan_svg.hpp"
#include "plan/plan_table.hpp"
#include "plan/played.hpp"
#include "policy/policies.hpp"
#include "serve/scenarios.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/testing/testing.hpp>

#include <unistd.h>

namespace httpretry::cli {
namespace {

constexpr int kMostCalls = 1000;

struct PlanOptions {
  PolicyChoice policy;
  ScenarioChoice scenario;
  std::optional<double> random;
  std::optional<std::uint64_t> seed;
  std::optional<int> repeat;
  std::string format = "table";
};

FlagTable table_of(PlanOptions& to) {
  using Text = const std::string&;
  FlagTable table{{"The policy", policy_flags(to.policy)},
                  {"What happens", scenario_flags(to.scenario)}};
  table.push_back(
      {"The plan",
       {{'\0', "random", "U", "fix every draw: 0 the least, 0.5 the middle, 1 the most",
         [&](Text v) { to.random = parse_unit(v, "--random"); }},
        {'\0', "seed", "N", "draw at random, the same for the same N",
         [&](Text v) { to.seed = static_cast<std::uint64_t>(parse_count(v, "--seed")); }},
        {'\0', "repeat", "N", "so many calls through one client: budgets carry over",
         [&](Text v) { to.repeat = static_cast<int>(parse_count(v, "--repeat")); }},
        {'\0', "format", "table|json|svg", "a table for people, a report, or a drawing",
         [&](Text v) { to.format = v; }},
        help_flag()}});
  return table;
}

void check(const PlanOptions& options) {
  if (options.format == "svg" && options.repeat) {
    throw UsageError("--format svg draws one call: it goes without --repeat");
  }
  if (options.random && options.seed) {
    throw UsageError("--random and --seed exclude each other");
  }
  if (options.repeat && (*options.repeat < 1 || *options.repeat > kMostCalls)) {
    throw UsageError("option --repeat: from 1 to " + std::to_string(kMostCalls));
  }
}

Request planned_request(const Args& words) {
  if (words.size() > 2) throw UsageError("plan takes a METHOD and a URL, and no more");
  const auto url = words.empty() ? std::string("http://localhost/") : words.back();
  return plain_request(words.size() == 2 ? words.front() : "GET", url);
}

// Every attempt fails in a way that the policy retries: by 503 where it does.
Script failing(const RetryPolicy& policy) {
  const auto retried = [&](int status) {
    return policy.retry_on.statuses.contains(status) ||
           policy.retry_on.throttle_statuses.contains(status);
  };
  int status = 503;
  for (int other = 100; !retried(status) && other <= 599; ++other) {
    if (retried(other)) status = other;
  }
  return Script({Step(status)});
}

std::function<double()> draws(const PlanOptions& options) {
  if (options.seed) return seeded_random(*options.seed);
  return fixed_random(options.random.value_or(0.5));
}

std::string json_of(const PlanOptions& options, const Play& what, const Played& played) {
  const auto& policy = what.policies.find(what.request.method(), *what.request.parsed_url());
  std::string text;
  for (const auto& outcome : played.outcomes) {
    text += (text.empty() ? "" : ",\n") + report_json(what.request, outcome, policy, true);
  }
  return (options.repeat ? "[" + text + "]" : text) + '\n';
}

std::string heading(const Play& what) {
  const auto& policy = what.policies.find(what.request.method(), *what.request.parsed_url());
  auto text = what.request.method() + " " + what.request.parsed_url()->without_secrets() + ", ";
  text += policy.name.empty() ? "preset " + policy.preset : "policy " + policy.name;
  if (!policy.endpoint.empty()) text += ", endpoint " + policy.endpoint;
  return text + " (" + policy.source + ")";
}

std::string decisions(const Played& played) {
  std::string text;
  for (std::size_t i = 0; i < played.outcomes.size(); ++i) {
    if (played.outcomes.size() > 1) text += "\ncall " + std::to_string(i + 1) + "\n";
    text += table_of_decisions(played.outcomes[i]);
  }
  return text;
}

std::string shown_ranges(const PlanOptions& options, const RetryPolicy& policy, const Play& what,
                         std::string& cut_short) {
  const auto played = play_extremes(what, cut_short);
  const auto &shortest = played[0], &middle = played[1], &longest = played[2];
  if (options.format == "table") {
    return heading(what) + '\n' + table_of_ranges(policy, shortest, middle, longest);
  }
  return svg(heading(what), policy, schedule_of_ranges(policy, shortest, middle, longest),
             {{"shortest", &shortest}, {"mean", &middle}, {"longest", &longest}});
}

std::string shown_calls(const PlanOptions& options, const RetryPolicy& policy, const Play& what,
                        std::string& cut_short) {
  const auto played = play(what);
  cut_short = played.cut_short;
  if (options.format == "json") return json_of(options, what, played);
  if (options.format == "table") return heading(what) + '\n' + decisions(played);
  const auto& only = played.outcomes.front();
  return svg(heading(what), policy, schedule_of(only), {{"this call", &only}});
}

}  // namespace

FlagTable plan_table() {
  static PlanOptions unused;
  return table_of(unused);
}

int plan(const Args& args) {
  PlanOptions options;
  const auto words = parse(args, table_of(options));
  check(options);
  const auto request = planned_request(words);
  const auto scenario = chosen_scenario(options.scenario);
  const auto policies = chosen_policies(options.policy);
  const auto& policy = *policies.find(request.method(), *request.parsed_url()).policy;
  const auto script = scenario ? script_for(*scenario, request) : failing(policy);
  const Play what{policies, request, script, draws(options), options.repeat.value_or(1)};

  const bool exact = scenario || options.random || options.seed || options.repeat;
  std::string cut_short;
  const auto text = exact || options.format == "json"
                        ? shown_calls(options, policy, what, cut_short)
                        : shown_ranges(options, policy, what, cut_short);
  write_all(STDOUT_FILENO, text, -1, "standard output");
  if (!cut_short.empty()) say("httpretry: stopped " + cut_short);
  return kOk;
}

}  // namespace httpretry::cli
