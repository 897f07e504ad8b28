// httpretry plan: shows what would happen to a request, without a network.
#include "cli/commands.hpp"
#include "cli/date.hpp"
#include "cli/exit_status.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"
#include "cli/scenario_options.hpp"
#include "cli/text.hpp"
#include "plan/simulated_call.hpp"
#include "plan/svg.hpp"
#include "plan/table.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/testing/testing.hpp>

#include <cmath>

namespace httpretry::cli {
namespace {

constexpr int kMostCalls = 1000;
constexpr bool kVirtualTime = true;

struct PlanOptions {
  PolicyChoice policy;
  std::vector<std::string> headers;
  ScenarioChoice scenario;
  std::optional<double> random;
  std::optional<std::uint64_t> seed;
  std::optional<int> repeat;
  std::optional<int> parallel;
  std::optional<double> rate;
  std::uint64_t cost = 1;
  std::optional<WallTime> now;
  std::string format = "table";
};

// Returns the flags of `httpretry plan` in groups, each with its title in --help. Each flag has a
// letter ('\0' if it has none), a name, the name of its value (empty if it takes none), a help
// text, and an action that stores the value `v` in `to`, which must outlive the flags. The casts
// lose nothing: parse_count throws UsageError unless the value is an int of 0 or more.
FlagTable plan_flags(PlanOptions& to) {
  return {{"Policy", policy_flags(to.policy)},
          {"Request",
           {header_flag(to.headers),
            {'\0', "cost", "N", "what each attempt takes from a \"rate\" that counts costs (1)",
             [&](Text v) { to.cost = static_cast<std::uint64_t>(parse_count(v, "--cost")); }}}},
          {"Scenario", scenario_flags(to.scenario)},
          {"Output",
           {{'\0', "random", "U",
             "use U for every random draw: 0 gives the shortest waits, 1 the longest",
             [&](Text v) { to.random = parse_unit(v, "--random"); }},
            {'\0', "seed", "N", "draw random numbers; the same N gives the same numbers",
             [&](Text v) { to.seed = static_cast<std::uint64_t>(parse_count(v, "--seed")); }},
            {'\0', "repeat", "N", "make N calls with one client, so that they share its budgets",
             [&](Text v) { to.repeat = static_cast<int>(parse_count(v, "--repeat")); }},
            {'\0', "parallel", "N",
             "make N calls at once with one client, which share the steps of the scenario",
             [&](Text v) { to.parallel = static_cast<int>(parse_count(v, "--parallel")); }},
            {'\0', "rate", "R",
             "with --repeat: begin R calls a second, which share the steps of the scenario",
             [&](Text v) { to.rate = parse_per_second(v, "--rate"); }},
            {'\0', "now", "DATE",
             "begin at DATE, such as 2026-01-02T03:04:05Z (default: the real date)",
             [&](Text v) { to.now = parse_date(v, "--now"); }},
            {'\0', "format", "table|json|svg", "the output: a table, a JSON report, or a drawing",
             store(to.format)},  // parse() rejects other words
            help_flag()}}};
}

// Throws UsageError if the options of `plan` contradict each other, or a number is out of range.
void check(const PlanOptions& options) {
  // --parallel is allowed: the drawing then has a line for each call.
  if (options.format == "svg" && options.repeat) {
    throw UsageError(
        "--format svg cannot draw calls that are spread over time; leave out --repeat");
  }
  if (options.random && options.seed) throw UsageError("--random and --seed cannot be combined");
  if (options.repeat && options.parallel) {
    throw UsageError("--repeat and --parallel cannot be combined");
  }
  if (options.rate && !options.repeat) throw UsageError("--rate needs --repeat");
  // With a much lower rate, the time between two calls would overflow.
  if (options.rate && *options.rate < 1e-3) {
    throw UsageError("option --rate must be 0.001 calls a second or more");
  }
  const auto check_count = [](const std::optional<int>& count, const char* flag) {
    if (!count || (*count >= 1 && *count <= kMostCalls)) return;
    throw UsageError("option " + std::string(flag) + " must be from 1 to " +
                     std::to_string(kMostCalls));
  };
  check_count(options.repeat, "--repeat");
  check_count(options.parallel, "--parallel");
}

Request planned_request(const Args& operands, const std::vector<std::string>& headers) {
  if (operands.size() > 2) throw UsageError("plan takes at most a METHOD and a URL");
  const auto url = operands.empty() ? std::string("http://localhost/") : operands.back();
  return plain_request(operands.size() == 2 ? operands.front() : "GET", url, headers);
}

// Returns a script in which every response has a status that the policy retries; 503 if possible.
Script failing_script(const RetryPolicy& policy) {
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

// Returns Simulation::begin_every.
std::optional<Duration> begin_every(const PlanOptions& options) {
  if (options.parallel) return Duration::zero();
  if (!options.rate) return std::nullopt;
  return Duration(std::llround(1e9 / *options.rate));
}

// Returns the date in whole seconds, so that the waits until dates are as round as those of the
// scenario.
WallTime real_date() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string plan_json(const PlanOptions& options, const Simulation& simulation,
                      const SimulatedCalls& simulated) {
  std::string text;
  for (const auto& outcome : simulated.outcomes) {
    text += text.empty() ? "" : ",\n";
    text += report_json(simulation.request, outcome, kVirtualTime);
  }
  return (options.repeat || options.parallel ? "[" + text + "]" : text) + '\n';
}

std::string title(const Simulation& simulation) {
  const auto& policy = policy_for(simulation.policies, simulation.request);
  auto text =
      simulation.request.method() + " " + simulation.request.parsed_url()->without_secrets() + ", ";
  text += policy.name.empty() ? "preset " + policy.preset : "policy " + policy.name;
  if (!policy.endpoint.empty()) text += ", endpoint " + policy.endpoint;
  return printable(text + " (" + policy.source + ")");
}

std::string decisions(const SimulatedCalls& simulated) {
  std::string text;
  for (std::size_t i = 0; i < simulated.outcomes.size(); ++i) {
    if (simulated.outcomes.size() > 1) text += "\ncall " + std::to_string(i + 1) + "\n";
    text += table_of_decisions(simulated.outcomes[i]);
  }
  return text + hedge_budget_text(simulated);
}

// Returns a table or a drawing of the shortest, mean and longest waits. If a call was stopped
// before its end, sets `stopped` to the reason. Not for JSON, which reports calls.
std::string ranges_text(const PlanOptions& options, const RetryPolicy& policy,
                        const Simulation& simulation, std::string& stopped) {
  const auto calls = simulate_extremes(simulation, stopped);
  if (options.format == "table") return title(simulation) + '\n' + table_of_ranges(policy, calls);
  const auto schedule = schedule_of_ranges(policy, calls);
  return svg(title(simulation), policy, &schedule,
             {{"shortest", &calls.shortest}, {"mean", &calls.mean}, {"longest", &calls.longest}},
             end_lines(calls));
}

// Returns a table, a drawing or a report of exact calls. If a call was stopped before its end, sets
// `stopped` to the reason.
std::string calls_text(const PlanOptions& options, const RetryPolicy& policy,
                       const Simulation& simulation, std::string& stopped) {
  const auto simulated = simulate(simulation);
  stopped = simulated.stopped;
  if (options.format == "json") return plan_json(options, simulation, simulated);
  if (options.parallel && options.format == "svg") {
    return svg_of_calls(title(simulation), policy, simulated.outcomes);
  }
  if (simulation.shares_script()) return title(simulation) + '\n' + table_of_calls(simulated);
  if (options.format == "table") return title(simulation) + '\n' + decisions(simulated);
  const auto& only = simulated.outcomes.front();
  const auto schedule = schedule_of(only);
  return svg(title(simulation), policy, &schedule, {{"this call", &only}},
             {"ends " + end_text(only)});
}

}  // namespace

// Implements `httpretry plan`: simulates what happens to a request and prints it. Without a
// scenario, every response is a failure that the policy retries. Prints exact calls if a flag
// determines the outcomes, the random numbers or the number of calls, or if the format is JSON.
// Otherwise prints the range of each wait. Returns the exit status. Throws UsageError and
// BadPolicyFile.
int plan(const Args& args) {
  PlanOptions options;
  const auto operands = parse(args, plan_flags(options));
  check(options);
  const auto request = planned_request(operands, options.headers).cost(options.cost);
  const auto scenario = chosen_scenario(options.scenario);
  const auto policies = chosen_policies(options.policy);
  const auto& policy = *policy_for(policies, request).policy;
  const auto script = scenario ? script_for(*scenario, request) : failing_script(policy);
  const Simulation simulation{.policies = policies,
                              .request = request,
                              .script = script,
                              .random = draws(options),
                              .start = options.now.value_or(real_date()),
                              // --parallel and --repeat exclude each other.
                              .calls = options.parallel.value_or(options.repeat.value_or(1)),
                              .begin_every = begin_every(options)};

  // A JSON report describes calls, so it cannot have ranges.
  const bool exact = scenario || options.random || options.seed || options.repeat ||
                     options.parallel || options.format == "json";
  // The next statement sets it if the simulation stops a call that would never end.
  std::string why_stopped;
  const auto text = exact ? calls_text(options, policy, simulation, why_stopped)
                          : ranges_text(options, policy, simulation, why_stopped);
  write_stdout(text);
  if (!why_stopped.empty()) print_message("httpretry: stopped " + why_stopped);
  return kOk;
}

FlagTable plan_table() { return unused_table<PlanOptions>(plan_flags); }

}  // namespace httpretry::cli
