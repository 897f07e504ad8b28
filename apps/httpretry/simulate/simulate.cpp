// httpretry simulate: shows what clients with some policies do to a server.
#include "cli/commands.hpp"
#include "cli/input.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"
#include "cli/text.hpp"
#include "plan/simulated_call.hpp"
#include "policy/explain_text.hpp"

#include <httpretry/simulate/simulate.hpp>

namespace httpretry::cli {
namespace {

// A policy with its settings, and its name in the output.
struct NamedChoice {
  PolicyChoice choice;
  std::string name;
};

struct SimulateOptions {
  std::vector<NamedChoice> policies;
  std::vector<std::pair<std::string, std::string>> settings;  // before the first policy: for all
  std::optional<std::string> model;
  std::optional<std::string> load;
  std::optional<double> rate;
  std::vector<std::string> headers;
  std::uint64_t cost = 1;
  std::vector<std::string> triggers;
  std::string format = "table";
  SimulationOptions simulation;
};

// Adds a --set, "KEY=VALUE". It applies to the policy before it, or to all policies if it comes
// first.
void add_setting(SimulateOptions& to, const std::string& text) {
  PolicyChoice parsed;
  for (const auto& flag : policy_flags(parsed)) {
    if (flag.name == "set") flag.apply(text);
  }
  const auto& [key, value] = parsed.settings.front();
  if (!to.policies.empty()) return to.policies.back().choice.set(key, value);
  to.settings.emplace_back(key, value);
}

void add_name(SimulateOptions& to, const std::string& text) {
  if (to.policies.empty()) throw UsageError("--name must come after the policy that it names");
  to.policies.back().name = text;
}

int parse_clients(const std::string& text) {
  const auto count = parse_count(text, "--clients");
  if (count < 1 || count > 1'000'000) {
    throw UsageError("option --clients must be from 1 to 1000000");
  }
  return static_cast<int>(count);
}

// Returns the flags of `httpretry simulate` in groups, each with its title in --help. Each flag has
// a letter ('\0' if it has none), a name, the name of its value (empty if it takes none), a help
// text, and an action that stores the value `v` in `to`, which must outlive the flags.
FlagTable simulate_flags(SimulateOptions& to) {
  return {
      {"Policies",
       {{'\0', "policy", "FILE",
         "simulate the policies in FILE (default: $HTTPRETRY_POLICY, or standard)",
         // Each --policy and --preset adds a policy to compare.
         [&](Text v) { to.policies.emplace_back().choice.file = v; }},
        {'\0', "preset", "PRESET",
         "simulate a built-in policy; several policies are shown side by side",
         [&](Text v) { to.policies.emplace_back().choice.preset = v; }},
        {'\0', "set", "KEY=VALUE",
         "set one key of the preceding policy, or of all policies if none precedes",
         [&](Text v) { add_setting(to, v); }},
        {'\0', "name", "NAME", "the name of the preceding policy in the output",
         [&](Text v) { add_name(to, v); }}}},
      {"Request",
       {header_flag(to.headers),
        {'\0', "cost", "N",
         "what each attempt takes from a \"rate\" that counts costs (default: 1)",
         [&](Text v) { to.cost = static_cast<std::uint64_t>(parse_count(v, "--cost")); }}}},
      {"Server",
       // ServerModel::Kind has these models, and Load::Kind has the loads below.
       {{'\0', "model", "MODEL",
         "the server: fail, capacity, queue, slope, occ or trace, with KEY=VALUE pairs after a "
         "colon, or a JSON file (default: fail)",
         store(to.model)},
        {'\0', "trigger", "TRIGGER",
         "what goes wrong, such as at=20s,for=10s,capacity=0.2; may be repeated",
         append(to.triggers)}}},
      {"Load",
       {{'\0', "clients", "N", "the number of clients, each with its own budget (default: 100)",
         [&](Text v) { to.simulation.clients = parse_clients(v); }},
        {'\0', "rate", "N", "calls per second of all clients together (default: 1000)",
         [&](Text v) { to.rate = parse_per_second(v, "--rate"); }},
        {'\0', "load", "LOAD",
         "when calls begin: open, closed or once, with KEY=VALUE pairs after a colon, or a JSON "
         "file (default: open)",
         store(to.load)},
        {'\0', "duration", "TIME",
         "after this time, no call begins; those in flight end (default: 60s)",
         [&](Text v) { to.simulation.duration = parse_seconds(v, "--duration"); }},
        {'\0', "seed", "N", "draw other random numbers; the same N gives the same output",
         [&](Text v) {
           to.simulation.seed = static_cast<std::uint64_t>(parse_count(v, "--seed"));
         }}}},
      {"Output",
       {{'\0', "format", "table|json|html", "the output: a table, a JSON object, or a page",
         store(to.format)},
        help_flag()}}};
}

// Returns whether the value of a flag names a file. "trace:file=reports.json" does not.
bool is_path(const std::string& text) {
  if (text.find('=') != std::string::npos) return false;
  return text == "-" || text.ends_with(".json") || text.starts_with("./") || text.starts_with('/');
}

// Parses the value of a flag, or the content of the file that it names.
template <class T>
T parsed(Result<T> (*parse)(std::string_view, const std::string&), const std::string& value,
         const std::string& flag) {
  const bool file = is_path(value);
  std::string text = value;
  try {
    if (file) text = read_whole(value, kMaxTextFile);
  } catch (const ReadError& error) {
    throw UsageError("option " + flag + ": cannot read " + value + ": " + error.what());
  }
  auto result = parse(text, file ? value : flag);
  if (!result) throw UsageError(result.error().message);
  return *std::move(result);
}

// Returns which policy of a file the request gets: "endpoint orders", "policy careful" or
// "default".
std::string policy_in_file(const ResolvedPolicy& resolved) {
  if (!resolved.endpoint.empty()) return "endpoint " + resolved.endpoint;
  return resolved.name.empty() ? "default" : "policy " + resolved.name;
}

// Returns the file of policies, or "" if the policy is a preset.
std::string file_of(const PolicyChoice& choice) {
  if (choice.file || choice.preset) return choice.file.value_or("");
  return environment_variable("HTTPRETRY_POLICY");
}

std::string name_of(const NamedChoice& named, const std::string& file,
                    const ResolvedPolicy& resolved) {
  if (!named.name.empty()) return named.name;
  auto name = file.empty() ? named.choice.preset.value_or("standard")
                           : file + " (" + policy_in_file(resolved) + ")";
  for (const auto& [key, value] : named.choice.settings) {
    name.append(" ").append(key).append("=" + value);
  }
  return name;
}

// Throws UsageError if the file has endpoints, but none for the request. A simulation of the
// default would show a policy that the user does not mean.
void check_match(const PolicySet& set, const std::string& file, const Request& request,
                 bool has_url) {
  if (set.endpoint_count() == 0) return;
  if (!has_url) {
    throw UsageError("simulate needs a URL, because " + printable(file) + " has " +
                     counted(set.endpoint_count(), "endpoint"));
  }
  if (!policy_for(set, request).endpoint.empty()) return;
  const auto& url = *request.parsed_url();
  auto misses =
      near_misses_text(set.near_misses(request.method(), url, request.headers()), kMostNearMisses);
  if (!misses.empty()) misses = '\n' + misses.substr(0, misses.size() - 1);  // one line break less
  throw UsageError("no endpoint of " + printable(file) + " matches " + request.method() + ' ' +
                   url.without_secrets() + misses);
}

void choose_policies(SimulateOptions& options, bool has_url) {
  auto& simulation = options.simulation;
  if (options.policies.empty()) options.policies.emplace_back();
  for (auto& named : options.policies) {
    const auto file = file_of(named.choice);
    auto choice = named.choice;
    choice.settings = options.settings;
    for (const auto& [key, value] : named.choice.settings) choice.set(key, value);
    auto set = chosen_policies(choice);
    check_match(set, file, simulation.request, has_url);
    const auto name = name_of(named, file, policy_for(set, simulation.request));
    simulation.policies.emplace_back(name, std::move(set));
  }
}

void choose_load(SimulateOptions& options) {
  auto& load = options.simulation.load;
  if (options.load) load = parsed(&parse_load, *options.load, "--load");
  if (!options.rate) return;
  if (load.kind != Load::Kind::Open || !load.curve.empty()) {
    throw UsageError("--rate needs an open load without a curve");
  }
  load.rate = *options.rate;
}

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_of(const Args& args) {
  std::string text = "httpretry simulate";
  for (const auto& arg : args) text += ' ' + quoted(arg);
  return text;
}

}  // namespace

// Implements `httpretry simulate [options] [[METHOD] URL]`: simulates what clients with some
// policies do to a server, and prints a report as a table, JSON or HTML. Returns the exit status.
// Throws UsageError and BadPolicyFile.
int simulate(const Args& args) {
  SimulateOptions options;
  const auto operands = parse(args, simulate_flags(options));  // fills `options`
  if (operands.size() > 2) throw UsageError("simulate takes at most a METHOD and a URL");
  auto& simulation = options.simulation;
  if (operands.empty() && !options.headers.empty()) throw UsageError("-H needs a URL");
  if (!operands.empty()) {
    const auto method = operands.size() == 2 ? operands.front() : "GET";
    simulation.request = plain_request(method, operands.back(), options.headers);
  }
  simulation.request.cost(options.cost);  // without operands, this is the default request
  // Sets simulation.policies. A policy file with endpoints needs a URL, which selects one of them.
  choose_policies(options, /*has_url=*/!operands.empty());
  if (options.model) simulation.model = parsed(&parse_model, *options.model, "--model");
  for (const auto& trigger : options.triggers) {
    simulation.model.triggers.push_back(parsed(&parse_trigger, trigger, "--trigger"));
  }
  choose_load(options);  // sets simulation.load
  const auto report = httpretry::simulate(simulation);
  if (!report) throw UsageError(report.error().message);
  write_stdout(options.format == "json"   ? json_of(*report)
               : options.format == "html" ? html_of(*report, command_of(args))
                                          : httpretry::table_of(*report));
  return 0;
}

FlagTable simulate_table() { return unused_table<SimulateOptions>(simulate_flags); }

}  // namespace httpretry::cli
