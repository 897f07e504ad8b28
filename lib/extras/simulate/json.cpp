// The report as JSON.
#include "text.hpp"

#include "lib/core/json/detail/json.hpp"

#include <cmath>

namespace httpretry {
namespace {

using Json = OrderedJson;

// For `parts` in rounded().
constexpr double kOneDecimal = 10;
constexpr double kThreeDecimals = 1e3;
constexpr double kFourDecimals = 1e4;

// Rounds to a multiple of 1 / `parts`, so that the JSON has short numbers.
double rounded(double value, double parts) { return std::round(value * parts) / parts; }

Json or_null(const std::optional<double>& value) {
  return value ? Json(rounded(*value, kFourDecimals)) : Json();
}

Json whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

Json percentile_or_null(const SimulationRun& run, double ms) {
  return run.succeeded > 0 ? Json(rounded(ms, kThreeDecimals)) : Json();
}

// Returns the course of a run, as an object of arrays with one value for each second:
// {"offered":[1000,980],"sent":[…],…}. The samples of a run are shorter than a second. The counts
// of a second are the sums of its samples; "in_flight" and "budget" are the values of its last
// sample. "budget" is null if the policy has no budget.
Json series_of(const SimulationRun& run) {
  constexpr std::size_t kSamplesPerSecond = std::chrono::seconds(1) / kSamplePeriod;
  Json series;
  for (const auto* name : {"offered", "sent", "succeeded", "failed", "in_flight", "budget"}) {
    series[name] = Json::array();
  }
  for (std::size_t first = 0; first < run.samples.size(); first += kSamplesPerSecond) {
    SimulationSample sum;
    const auto end = std::min(first + kSamplesPerSecond, run.samples.size());  // of this second
    for (auto i = first; i < end; ++i) {
      const auto& sample = run.samples[i];
      sum.offered += sample.offered;
      sum.sent += sample.sent;
      sum.succeeded += sample.succeeded;
      sum.failed += sample.failed;
    }
    series["offered"].push_back(sum.offered);
    series["sent"].push_back(sum.sent);
    series["succeeded"].push_back(sum.succeeded);
    series["failed"].push_back(sum.failed);
    const auto& last = run.samples[end - 1];
    series["in_flight"].push_back(last.in_flight);
    series["budget"].push_back(rounded(static_cast<double>(last.budget), kOneDecimal));
  }
  if (!run.has_budget) series["budget"] = nullptr;
  return series;
}

// Returns the result of one policy as JSON. An ending such as "_ms" is the unit of the value.
// Values that do not exist are null: the percentiles if no call succeeded, the time of the recovery
// without one, and the bounds that the policy does not have.
Json json_of(const SimulationRun& run) {
  Json json;
  json["policy"] = run.policy;
  json["calls"] = run.calls;
  json["succeeded"] = run.succeeded;
  json["sends"] = run.sends;
  json["sends_per_call"] = rounded(run.sends_per_call(), kFourDecimals);
  json["peak_sends_per_second"] = whole(run.peak_sends_per_second);
  // The durations of the calls that succeeded.
  json["p50_ms"] = percentile_or_null(run, run.p50_ms);
  json["p95_ms"] = percentile_or_null(run, run.p95_ms);
  json["p99_ms"] = percentile_or_null(run, run.p99_ms);
  json["finished_at_s"] = rounded(run.finished_at_s, kThreeDecimals);
  json["recovered_after_s"] = or_null(run.recovered_after);
  json["verdict"] = verdict_text(run);
  json["sentence"] = verdict_sentence(run);
  // Sends per call if every attempt fails: in the long run, and while the budget is full.
  json["w_l"] = or_null(run.bounds.w_l);
  json["w_l_at_first"] = or_null(run.bounds.sends_at_first);
  // Retries before the budget limits any, and those that a client is always allowed: in flight
  // (concurrent) or in each second (ratio).
  json["budget_burst"] = or_null(run.bounds.burst);
  json["budget_always"] = or_null(run.bounds.always);
  json["stable_below"] = rounded(run.bounds.stable_below, kFourDecimals);  // share of the capacity
  json["unfinished"] = run.unfinished;                                     // calls that never end
  json["not_sent"] = run.not_sent;                // calls that a guard held back
  json["wasted"] = run.wasted;                    // responses after their client had given up
  json["budget_refusals"] = run.budget_refusals;  // calls that ended because the budget was spent
  // The sends in the busiest sample, relative to the mean.
  json["herd"] = rounded(run.herd, kThreeDecimals);
  json["per_second"] = series_of(run);
  return json;
}

}  // namespace

std::string json_of(const SimulationReport& report) {
  Json json;
  json["seed"] = report.seed;
  json["model"] = to_string(report.model.kind);
  json["clients"] = report.clients;
  json["duration_s"] = std::chrono::duration<double>(report.duration).count();
  json["server"] = simulation::describe(report.model);
  json["load"] = simulation::describe(report.load);
  json["runs"] = Json::array();
  for (const auto& run : report.runs) json["runs"].push_back(json_of(run));
  return json_text(json, 3) + '\n';
}

}  // namespace httpretry
