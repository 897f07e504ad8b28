// plan: what would happen, without a network.
#include "exit_status.hpp"
#include "output.hpp"
#include "plan_table.hpp"
#include "played.hpp"
#include "policies.hpp"
#include "scenarios.hpp"
#include "verbs.hpp"
#include "words.hpp"

#include <httpretry/report.hpp>
#include <httpretry/testing.hpp>

#include <unistd.h>
#include <cstdio>

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
  bool help = false;
};

std::vector<Flag> plan_flags(PlanOptions& to) {
  using Text = const std::string&;
  auto flags = policy_flags(to.policy);
  const auto scenario = scenario_flags(to.scenario);
  flags.insert(flags.end(), scenario.begin(), scenario.end());
  const std::vector<Flag> more{
      {'\0', "random", "U", "fix every draw: 0 the least, 0.5 the middle, 1 the most",
       [&](Text v) { to.random = parse_unit(v, "--random"); }},
      {'\0', "seed", "N", "draw at random, the same for the same N",
       [&](Text v) { to.seed = static_cast<std::uint64_t>(parse_count(v, "--seed")); }},
      {'\0', "repeat", "N", "play it N times through one client: budgets carry over",
       [&](Text v) { to.repeat = static_cast<int>(parse_count(v, "--repeat")); }},
      {'\0', "format", "FORMAT", "table or json",
       [&](Text v) {
         to.format = one_of(v, "--format", {"table", "json", "svg"});
       }},
      {'h', "help", "", "this", [&](Text) { to.help = true; }},
  };
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

int help(const std::vector<Flag>& flags) {
  std::printf(
      "httpretry plan [options] [METHOD URL]\n\n"
      "What would happen to a request, by the same code that sends: in virtual time, without a\n"
      "network. Without a scenario every attempt fails in a way that the policy retries, and the\n"
      "table shows the range of each wait; with one, the exact decisions (draws of 0.5 where\n"
      "neither --random nor --seed is given). METHOD is GET where it is left out.\n\n%s",
      help_lines(flags).c_str());
  return kOk;
}

void check(const PlanOptions& options) {
  if (options.format == "svg") throw UsageError("--format svg is not supported yet");
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
  const bool bare = url.find("://") == std::string::npos;
  try {
    Request request(words.size() == 2 ? words.front() : "GET", bare ? "http://" + url : url);
    if (const auto& parsed = request.parsed_url(); !parsed) {
      throw UsageError("\"" + url + "\" is " + parsed.error().message);
    }
    return request;
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
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
  return text + " (" + policy.source + ")\n";
}

std::string decisions(const Played& played) {
  std::string text;
  for (std::size_t i = 0; i < played.outcomes.size(); ++i) {
    if (played.outcomes.size() > 1) text += "\ncall " + std::to_string(i + 1) + "\n";
    text += table_of_decisions(played.outcomes[i]);
  }
  return text;
}

std::string ranges(const RetryPolicy& policy, Play what, std::string& cut_short) {
  std::vector<Outcome> outcomes;
  for (const double draw : {0.0, 0.5, 1.0}) {
    what.random = fixed_random(draw);
    auto played = play(what);
    if (!played.cut_short.empty()) cut_short = played.cut_short;
    outcomes.push_back(std::move(played.outcomes.front()));
  }
  return table_of_ranges(policy, outcomes[0], outcomes[1], outcomes[2]);
}

}  // namespace

int plan(const Args& args) {
  PlanOptions options;
  const auto flags = plan_flags(options);
  const auto words = parse(args, flags);
  if (options.help) return help(flags);
  check(options);
  const auto request = planned_request(words);
  const auto scenario = chosen_scenario(options.scenario);
  const auto policies = chosen_policies(options.policy);
  const auto& policy = *policies.find(request.method(), *request.parsed_url()).policy;
  const auto script = scenario ? script_for(*scenario, request) : failing(policy);
  const Play what{policies, request, script, draws(options), options.repeat.value_or(1)};

  std::string cut_short;
  std::string text;
  if (options.format == "table" && !scenario && !options.random && !options.seed &&
      !options.repeat) {
    text = heading(what) + ranges(policy, what, cut_short);
  } else {
    const auto played = play(what);
    cut_short = played.cut_short;
    text = options.format == "json" ? json_of(options, what, played)
                                    : heading(what) + decisions(played);
  }
  write_all(STDOUT_FILENO, text, -1, "standard output");
  if (!cut_short.empty()) say("httpretry: stopped " + cut_short);
  return kOk;
}

}  // namespace httpretry::cli
