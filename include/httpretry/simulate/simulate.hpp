// simulate: what clients with a retry policy do to a server, in virtual time.
//
//   SimulationOptions options;
//   options.policies = {{"standard", PolicySet()}, {"ours", ours}};
//   options.model = ServerModel(ServerModel::Kind::Queue);
//   options.model.triggers = {outage};
//   const SimulationReport report = simulate(options).value();
//   CHECK(report.runs[1].recovered_after);
//
// The clients are those of the library: their middlewares, policies, budgets and guards. Only the
// transport is a model. All policies get the same load. The same options give the same report.
//
// A library of its own: httpretry::simulate.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/simulate/model.hpp>

#include <functional>
#include <string>
#include <vector>

namespace httpretry {

struct HTTPRETRY_API SimulatedPolicy {
  SimulatedPolicy() = default;
  SimulatedPolicy(std::string title, PolicySet set)
      : name(std::move(title)), policies(std::move(set)) {}

  std::string name;
  PolicySet policies;
};

struct HTTPRETRY_API SimulationOptions {
  SimulationOptions() = default;

  // One run for each. Default: none, which is an error.
  std::vector<SimulatedPolicy> policies;
  ServerModel model;
  Load load;
  // Each client has its own budgets and guards.
  int clients = 100;
  // After that no call begins. Those under way go on to their end and count.
  Duration duration = std::chrono::seconds(60);
  std::uint64_t seed = 1;
  // What is sent; its method and URL choose the policy of a policy file.
  Request request = Request::get("http://server.example/");
  // Ends the simulation with Errc::TooLarge after so many sends in one run.
  std::uint64_t most_sends = 100'000'000;
  // Each wait is the mean of those that are possible.
  bool mean_waits = false;
  // Asked every few thousand sends; true ends the simulation with Errc::Canceled.
  std::function<bool()> canceled;
};

// Counts of one piece of a run.
struct SimulationSample {
  std::uint32_t offered = 0;    // calls that began
  std::uint32_t sent = 0;       // requests that the clients, or the last layer, sent
  std::uint32_t succeeded = 0;  // calls that ended well
  std::uint32_t failed = 0;     // calls that ended otherwise
  std::uint32_t in_flight = 0;  // calls, at the end of the piece
  float budget = 0;             // tokens left, the mean of the clients; at the end of the piece
};

// What one policy allows, whatever the server does.
struct PolicyBounds {
  // Sends per call when everything fails: at first, and in the long run, when a budget is spent.
  // Counted by the library's own retry loop with the mean of each wait. Empty: no limit below 1000.
  std::optional<double> sends_at_first;
  std::optional<double> w_l;
  // The share of its capacity up to which the server recovers from any overload: 1 / w_l.
  double stable_below = 0;
  // Retries that a full budget allows before it counts; empty without a budget.
  std::optional<double> burst;
  // Retries of one client that a concurrent budget always allows at once, whatever w_l says.
  std::optional<double> always;
};

struct HTTPRETRY_API SimulationRun {
  enum class Verdict : std::uint8_t { Stable, Recovered, Metastable, Overloaded };
  SimulationRun() = default;

  std::string policy;
  std::uint64_t calls = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t unfinished = 0;  // calls that nothing will ever end: no response and no limit
  std::uint64_t sends = 0;
  std::uint64_t not_sent = 0;         // calls that never reached the network: held back by a guard
  std::uint64_t wasted = 0;           // responses that came when their client had left
  std::uint64_t budget_refusals = 0;  // calls that ended because their budget was spent
  double peak_sends_per_second = 0;   // in the busiest second
  double herd = 0;                    // sends in the busiest tenth of a second, by their mean
  double p50_ms = 0, p95_ms = 0, p99_ms = 0;  // of the calls that succeeded
  double finished_at_s = 0;                   // the end of the last call
  Verdict verdict = Verdict::Stable;
  // From the end of the last trigger until the server has been as good as before it for ten
  // seconds. Empty without a trigger, and where that was never so.
  std::optional<double> recovered_after;
  bool has_budget = false;
  PolicyBounds bounds;
  std::vector<SimulationSample> samples;  // each of kSamplePeriod

  [[nodiscard]] double sends_per_call() const {
    return calls == 0 ? 0 : static_cast<double>(sends) / static_cast<double>(calls);
  }
  [[nodiscard]] double success_ratio() const {
    return calls == 0 ? 0 : static_cast<double>(succeeded) / static_cast<double>(calls);
  }
};

inline constexpr Duration kSamplePeriod = std::chrono::milliseconds(100);

struct HTTPRETRY_API SimulationReport {
  SimulationReport() = default;

  std::uint64_t seed = 0;
  ServerModel model;
  Load load;
  int clients = 0;
  Duration duration{};
  std::vector<SimulationRun> runs;
};

// Errc::InvalidRequest where the options make no sense.
[[nodiscard]] HTTPRETRY_API Result<SimulationReport> simulate(const SimulationOptions& options);

// From the policy alone.
[[nodiscard]] HTTPRETRY_API PolicyBounds bounds_of(const PolicySet& policies,
                                                   const Request& request);

// "stable", "recovered in 14 s", "metastable", "overloaded".
[[nodiscard]] HTTPRETRY_API std::string verdict_text(const SimulationRun& run);
// The verdict in a sentence, with its numbers.
[[nodiscard]] HTTPRETRY_API std::string verdict_sentence(const SimulationRun& run);

// The report for people, for programs, and as one HTML page that needs no network and no script.
// `command` stands on the page as the way to repeat it.
[[nodiscard]] HTTPRETRY_API std::string table_of(const SimulationReport& report);
[[nodiscard]] HTTPRETRY_API std::string json_of(const SimulationReport& report);
[[nodiscard]] HTTPRETRY_API std::string html_of(const SimulationReport& report,
                                                std::string_view command);
// The comparison of that page as a drawing.
[[nodiscard]] HTTPRETRY_API std::string svg_of(const SimulationReport& report);

}  // namespace httpretry
