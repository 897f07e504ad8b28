// Simulates, in virtual time, what many clients with a retry policy do to a server.
//
//   SimulationOptions options;
//   options.policies = {{"standard", PolicySet()}, {"ours", ours}};
//   options.model = ServerModel(ServerModel::Kind::Queue);
//   options.model.triggers = {outage};
//   const SimulationReport report = simulate(options).value();
//   CHECK(report.runs[1].recovered_after);
//
// The clients run the library's own middlewares, policies, budgets and guards. Only the transport
// is a model. All policies get the same load, and the same options always give the same report.
//
// This is a separate library: link httpretry::simulate.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/request.hpp>
#include <httpretry/simulate/model.hpp>

#include <functional>
#include <string>
#include <vector>

namespace httpretry {

// A policy to compare, with its name in the report.
struct HTTPRETRY_API SimulatedPolicy {
  SimulatedPolicy() = default;
  SimulatedPolicy(std::string title, PolicySet set)
      : name(std::move(title)), policies(std::move(set)) {}

  std::string name;
  PolicySet policies;
};

// The options of `simulate`: the policies to compare, the model of the server, and the load.
struct HTTPRETRY_API SimulationOptions {
  SimulationOptions() = default;

  // Each policy has one run. At least one is required.
  std::vector<SimulatedPolicy> policies;
  ServerModel model;
  Load load;
  // Each client has its own budgets and guards.
  int clients = 100;
  // No call begins after this time. Calls in flight then continue to their end and are counted.
  Duration duration = std::chrono::seconds(60);
  // Seeds all random numbers.
  std::uint64_t seed = 1;
  // The request of every call. Its method, URL and headers select the policy of a policy file.
  Request request = Request::get("http://server.example/");
  // A run with more sends ends the simulation with Errc::TooLarge.
  std::uint64_t most_sends = 100'000'000;
  // Uses the mean of each wait in place of a random one.
  bool mean_waits = false;
  // Called every few thousand events. If it returns true, the simulation ends with Errc::Canceled.
  std::function<bool()> canceled;
};

// Counts of one sample period of a run (kSamplePeriod).
struct SimulationSample {
  std::uint32_t offered = 0;    // calls that began
  std::uint32_t sent = 0;       // requests to the server, from the clients or the last layer
  std::uint32_t succeeded = 0;  // calls that succeeded
  std::uint32_t failed = 0;     // calls that ended without success
  std::uint32_t in_flight = 0;  // calls in flight at the end of the period
  float budget = 0;             // tokens left at the end of the period, the mean over the clients
};

// Bounds on the load that a policy can cause, whatever the server does.
struct PolicyBounds {
  // Sends per call if every attempt fails: while the budget is full, and in the long run, after it
  // is spent. The library's own retry loop counts them, with the mean of each wait. Empty if there
  // is no limit below 1000.
  std::optional<double> sends_at_first;
  std::optional<double> w_l;  // in the long run
  // The server recovers from any overload if the load is below this share of its capacity: 1 / w_l.
  // 0 if w_l is empty.
  double stable_below = 0;
  // Retries that a full budget allows before it limits anything; empty without such a budget.
  std::optional<double> burst;
  // Retries that one client is always allowed, regardless of w_l: in flight under a concurrent
  // budget, in each second under a ratio budget. Empty with other budgets.
  std::optional<double> always;
};

// The result of one policy.
struct HTTPRETRY_API SimulationRun {
  // Stable: no trigger, or none that did harm. Recovered: as good as before the trigger after some
  // time. Metastable: still bad although the trigger is over. Overloaded: became worse without a
  // trigger.
  enum class Verdict : std::uint8_t { Stable, Recovered, Metastable, Overloaded };
  SimulationRun() = default;

  std::string policy;            // its name
  std::uint64_t calls = 0;       // that began
  std::uint64_t succeeded = 0;   // calls
  std::uint64_t unfinished = 0;  // calls that never end: they get no response and have no timeout
  std::uint64_t sends = 0;       // requests to the server
  std::uint64_t not_sent = 0;    // calls without a send, because a guard held them back
  std::uint64_t wasted = 0;      // responses that arrived after their client had given up
  std::uint64_t budget_refusals = 0;  // calls that ended because their budget was spent
  double peak_sends_per_second = 0;   // in the busiest second
  double herd = 0;  // sends in the busiest sample period, relative to the mean while calls begin
  double p50_ms = 0, p95_ms = 0, p99_ms = 0;  // of the calls that succeeded
  double finished_at_s = 0;                   // the end of the last call
  Verdict verdict = Verdict::Stable;
  // Seconds from the end of the last trigger to the beginning of the first ten seconds in which the
  // server is as good as before the triggers. Empty without a trigger, or if it did not recover.
  std::optional<double> recovered_after;
  bool has_budget = false;  // `samples` have budgets
  PolicyBounds bounds;
  std::vector<SimulationSample> samples;  // one for each kSamplePeriod

  // Returns how many requests a call caused on average.
  [[nodiscard]] double sends_per_call() const {
    return calls == 0 ? 0 : static_cast<double>(sends) / static_cast<double>(calls);
  }
  // Returns the share of calls that succeeded, from 0 to 1.
  [[nodiscard]] double success_ratio() const {
    return calls == 0 ? 0 : static_cast<double>(succeeded) / static_cast<double>(calls);
  }
};

// The time between two samples of a run.
inline constexpr Duration kSamplePeriod = std::chrono::milliseconds(100);

// The result of a simulation: one run for each policy, and the options that they have in common.
struct HTTPRETRY_API SimulationReport {
  SimulationReport() = default;

  std::uint64_t seed = 0;
  ServerModel model;
  Load load;
  int clients = 0;
  Duration duration{};
  std::vector<SimulationRun> runs;
};

// Runs the simulation. Returns Errc::InvalidRequest if the options are inconsistent.
[[nodiscard]] HTTPRETRY_API Result<SimulationReport> simulate(const SimulationOptions& options);

// Returns the bounds that follow from the policy alone, without a model of a server.
[[nodiscard]] HTTPRETRY_API PolicyBounds bounds_of(const PolicySet& policies,
                                                   const Request& request);

// Returns the verdict as "stable", "recovered in 14 s", "metastable" or "overloaded".
[[nodiscard]] HTTPRETRY_API std::string verdict_text(const SimulationRun& run);
// Returns the verdict as a sentence with its numbers.
[[nodiscard]] HTTPRETRY_API std::string verdict_sentence(const SimulationRun& run);

// Returns the report as a table for people.
[[nodiscard]] HTTPRETRY_API std::string table_of(const SimulationReport& report);
// Returns the report as JSON.
[[nodiscard]] HTTPRETRY_API std::string json_of(const SimulationReport& report);
// Returns the report as one HTML page without scripts and external files. `command` is printed on
// the page, so that a reader can repeat the simulation.
[[nodiscard]] HTTPRETRY_API std::string html_of(const SimulationReport& report,
                                                std::string_view command);
// Returns the comparison of the policies on that page as an SVG drawing.
[[nodiscard]] HTTPRETRY_API std::string svg_of(const SimulationReport& report);

}  // namespace httpretry
