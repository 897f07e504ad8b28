// The report as JSON.
#include "text.hpp"

#include "lib/core/json/detail/json.hpp"

#include <cmath>

namespace httpretry {
namespace {

using Json = OrderedJson;

// Rounds to a multiple of 1 / `parts`, so that the JSON has short numbers.
double rounded(double value, double parts) { return std::round(value * parts) / parts; }

Json or_null(const std::optional<double>& value) {
  return value ? Json(rounded(*value, 1e4)) : Json();
}

Json whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

Json percentile(const SimulationRun& run, double ms) {
  return run.succeeded > 0 ? Json(rounded(ms, 1e3)) : Json();
}

// Returns an object of arrays with one value for each second: the sums of the counts, and the calls
// in flight and the budget at the end of the second. Without a budget, its array is null.
Json series_of(const SimulationRun& run) {
  constexpr std::size_t kSamplesPerSecond = std::chrono::seconds(1) / kSamplePeriod;
  Json series;
  for (const auto* name : {"offered", "sent", "succeeded", "failed", "in_flight", "budget"}) {
    series[name] = Json::array();
  }
  for (std::size_t first = 0; first < run.samples.size(); first += kSamplesPerSecond) {
    SimulationSample sum;
    const auto end = std::min(first + kSamplesPerSecond, run.samples.size());
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
    series["in_flight"].push_back(run.samples[end - 1].in_flight);
    series["budget"].push_back(rounded(static_cast<double>(run.samples[end - 1].budget), 10));
  }
  if (!run.has_budget) series["budget"] = nullptr;
  return series;
}

// Returns the result of one policy. The ending of a key, such as "_ms", is the unit of its value.
Json json_of(const SimulationRun& run) {
  Json json;
  json["policy"] = run.policy;
  json["calls"] = run.calls;
  json["succeeded"] = run.succeeded;
  json["sends"] = run.sends;
  json["sends_per_call"] = rounded(run.sends_per_call(), 1e4);
  json["peak_sends_per_second"] = whole(run.peak_sends_per_second);
  json["p50_ms"] = percentile(run, run.p50_ms);
  json["p95_ms"] = percentile(run, run.p95_ms);
  json["p99_ms"] = percentile(run, run.p99_ms);
  json["finished_at_s"] = rounded(run.finished_at_s, 1e3);
  json["recovered_after_s"] = or_null(run.recovered_after);
  json["verdict"] = verdict_text(run);
  json["sentence"] = verdict_sentence(run);
  json["w_l"] = or_null(run.bounds.w_l);
  json["w_l_at_first"] = or_null(run.bounds.sends_at_first);
  json["budget_burst"] = or_null(run.bounds.burst);
  json["budget_always"] = or_null(run.bounds.always);
  json["stable_below"] = rounded(run.bounds.stable_below, 1e4);
  json["unfinished"] = run.unfinished;
  json["not_sent"] = run.not_sent;
  json["wasted"] = run.wasted;
  json["budget_refusals"] = run.budget_refusals;
  json["herd"] = rounded(run.herd, 1e3);
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
