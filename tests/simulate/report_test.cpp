// The report: a table, a JSON object, a page and a drawing.
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

SimulationOptions outage() {
  SimulationOptions options;
  options.policies = {
      {"standard", policy_of(R"({"attempt_timeout": "1s"})")},
      {"four <times>",
       policy_of(R"({"max_attempts": 4, "budget": "none", "attempt_timeout": "1s"})")}};
  options.model = model_of("queue:servers=12,queue=100000");
  options.model.triggers = {trigger_of("at=10s,for=5s,capacity=0.1")};
  options.load.rate = 200;
  options.duration = 40s;
  return options;
}

// Simulated once, for all tests that only read it.
const SimulationReport& report_of_outage() {
  static const auto report = simulate(outage()).value();
  return report;
}

std::vector<std::string> texts_of(const SimulationReport& report) {
  return {table_of(report), json_of(report), html_of(report, "command"), svg_of(report)};
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("the same seed gives the same bytes, and another seed gives others" *
          doctest::test_suite("large")) {
  for (const auto* const model : {"fail:probability=0.3", "capacity:rate=150", "queue:servers=9",
                                  "slope:base=1s,per_request=10ms", "occ", "fail:layers=2",
                                  "queue:service=lognormal(50ms,1)"}) {
    CAPTURE(model);
    auto options = outage();
    options.model = model_of(model);
    options.duration = 10s;
    const auto first = texts_of(simulate(options).value());
    CHECK(first == texts_of(simulate(options).value()));
    options.seed = 2;
    CHECK(first[1] != texts_of(simulate(options).value())[1]);
  }
}

TEST_CASE("the order of the policies does not change their runs") {
  auto options = outage();
  options.duration = 25s;
  const auto forward = simulate(options).value();
  std::swap(options.policies[0], options.policies[1]);
  const auto backward = simulate(options).value();
  CHECK(forward.runs[0].sends == backward.runs[1].sends);
  CHECK(forward.runs[1].sends == backward.runs[0].sends);
  CHECK(forward.runs[1].p99_ms == backward.runs[0].p99_ms);
}

TEST_CASE("the JSON has the keys of its contract, and sums that agree") {
  const auto& report = report_of_outage();
  const auto json = nlohmann::json::parse(json_of(report));
  CHECK(json.at("seed") == 1);
  CHECK(json.at("model") == "queue");
  CHECK(json.at("clients") == 100);
  CHECK(json.at("duration_s") == 40);
  REQUIRE(json.at("runs").size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& run = json.at("runs")[i];
    CHECK(run.at("policy") == report.runs[i].policy);
    CHECK(run.at("calls") == report.runs[i].calls);
    CHECK(run.at("succeeded") == report.runs[i].succeeded);
    CHECK(run.at("sends") == report.runs[i].sends);
    CHECK(run.at("sends_per_call").get<double>() ==
          doctest::Approx(report.runs[i].sends_per_call()).epsilon(1e-3));
    CHECK(run.at("peak_sends_per_second") == report.runs[i].peak_sends_per_second);
    CHECK(run.at("p50_ms").get<double>() <= run.at("p95_ms").get<double>());
    CHECK(run.at("p95_ms").get<double>() <= run.at("p99_ms").get<double>());
    CHECK(run.at("finished_at_s").get<double>() > 40);
    CHECK(run.at("verdict") == verdict_text(report.runs[i]));
    const auto sum = [&](const char* name) {
      std::uint64_t total = 0;
      for (const auto& value : run.at("per_second").at(name)) total += value.get<std::uint64_t>();
      return total;
    };
    CHECK(sum("offered") == report.runs[i].calls);
    CHECK(sum("sent") == report.runs[i].sends);
    CHECK(sum("succeeded") == report.runs[i].succeeded);
    CHECK(sum("succeeded") + sum("failed") == report.runs[i].calls);
    CHECK(run.at("per_second").at("in_flight").back() == 0);
  }
  CHECK(json["runs"][0].at("w_l") == 1.2);
  CHECK(json["runs"][0].at("stable_below") == 0.8333);
  CHECK(json["runs"][0].at("budget_burst") == 100);
  CHECK(json["runs"][0].at("per_second").at("budget")[0] == 500);
  CHECK(json["runs"][1].at("w_l") == 4);
  CHECK(json["runs"][1].at("stable_below") == 0.25);
  CHECK(json["runs"][1].at("budget_burst").is_null());
  CHECK(json["runs"][1].at("per_second").at("budget").is_null());
  CHECK(json["runs"][1].at("recovered_after_s").is_null());
  CHECK(json["runs"][1].at("verdict") == "metastable");
}

TEST_CASE("in JSON, what was never so is null: a recovery, a percentile, a bound") {
  SimulationOptions options;
  options.policies = {{"none", policy_of(R"({"max_attempts": 2000, "max_elapsed_time": "none",
      "budget": "none", "backoff": {"kind": "none"}})")}};
  options.model = model_of("fail:probability=1,status=404");
  options.duration = 1s;
  const auto json = nlohmann::json::parse(json_of(simulate(options).value()));
  const auto& run = json.at("runs")[0];
  CHECK(run.at("recovered_after_s").is_null());
  CHECK(run.at("p50_ms").is_null());
  CHECK(run.at("w_l").is_null());
  CHECK(run.at("stable_below") == 0);
  CHECK(run.at("verdict") == "stable");
}

TEST_CASE("the table has small rates and factors as they were given") {
  auto options = outage();
  options.model = model_of("capacity:rate=1.5");
  options.model.triggers = {trigger_of("at=10s,for=5s,load=0.005"),
                            trigger_of("at=10s,for=5s,load=3")};
  options.load.rate = 0.4;
  CHECK(contains(table_of(simulate(options).value()),
                 "capacity: 1.5 requests a second; network 5ms each way; from 10s for 5s 0.005 "
                 "times the calls; from 10s for 5s 3 times the calls\n"
                 "open: 0.4 calls a second;"));
}

TEST_CASE("the table has a row for each policy, its verdict in a sentence, and its bounds") {
  const auto& report = report_of_outage();
  const auto table = table_of(report);
  CHECK(contains(table,
                 "queue: 12 workers of 50ms, a queue for 100 000; network 5ms each way; from "
                 "10s for 5s 10.0 % of the capacity\n"
                 "open: 200 calls a second; 100 clients, 40s, seed 1\n"));
  for (const auto& run : report.runs) {
    CHECK(contains(table, "\n" + run.policy + " "));
    CHECK(contains(table, "  " + verdict_sentence(run) + "\n"));
  }
  CHECK(contains(table,
                 "1.20 sends a call at worst: stable below 83.3 % of the capacity; after 100 "
                 "retries of a full budget (5 sends a call)"));
  CHECK(contains(table, "4.00 sends a call at worst: stable below 25.0 % of the capacity"));
}

TEST_CASE("the table says of calls what its columns do not") {
  const auto table = [](std::string_view model, const std::string& policy) {
    SimulationOptions options;
    options.policies = {{"it", policy_of(policy)}};
    options.model = model_of(model);
    options.duration = 5s;
    return table_of(simulate(options).value());
  };
  const auto refused = table("fail:probability=1", "{}");
  CHECK(contains(refused, " calls ended because their budget was spent\n"));
  const auto wasted =
      table("queue:servers=10,queue=100000", R"({"max_attempts": 1, "attempt_timeout": "500ms"})");
  CHECK(contains(wasted, " responses arrived after their client had given up\n"));
  const auto never = table("capacity:rate=900,reject=drop",
                           R"({"attempt_timeout": "none", "max_elapsed_time": "none"})");
  CHECK(contains(
      never, " calls never end: the server does not respond, and the policy has no time limit\n"));
  CHECK(contains(table("fail:probability=0", R"({"max_attempts": 2000, "budget": "none",
                        "max_elapsed_time": "none", "backoff": {"kind": "none"}})"),
                 "no limit on sends: no load is safe"));
}

TEST_CASE("the table has the singular for one") {
  auto options = one_call("fail:probability=1");
  options.policies = {{"it", policy_of(R"({"budget": {"kind": "tokens", "capacity": 5,
      "retry_cost": 5, "refill_on_success": 1}})")}};
  const auto spent = table_of(simulate(options).value());
  CHECK(contains(spent, "; after 1 retry of a full budget (2 sends a call)\n"));
  CHECK(contains(spent, "\n  1 call ended because its budget was spent\n"));
  options.model = model_of("capacity:rate=1");
  options.load = load_of("open:rate=1");
  options.duration = 5s;
  options.policies = {{"it", policy_of(R"({"budget": {"kind": "ratio", "min_per_second": 1}})")}};
  const auto rates = table_of(simulate(options).value());
  CHECK(contains(rates, "capacity: 1 request a second; "));
  CHECK(contains(rates, "\nopen: 1 call a second; 1 client, "));
  CHECK(contains(rates, "; 1 retry a second is always allowed\n"));
}

TEST_CASE("the page says which policy is better, shows all its curves, and how to repeat it") {
  const auto& report = report_of_outage();
  const auto page = html_of(report, "httpretry simulate --name 'a & b'");
  CHECK(page.starts_with("<!DOCTYPE html>\n"));
  CHECK(contains(page, "<h1>standard does best: "));
  CHECK(contains(page, "four &lt;times&gt; does worst: metastable"));
  CHECK(!contains(page, "<times>"));
  CHECK(contains(page, "<pre>httpretry simulate --name 'a &amp; b'</pre>"));
  for (const std::string_view word :
       {"<script", "https:", "url(", "src=", "@import", "<link", "<img"}) {
    CHECK(!contains(page, word));
  }
  // Offered and sent as lines, succeeded as an area; failed, in flight, budget as lines.
  CHECK(count_of(page, "class=\"offered\"/>") == 2 + 1);  // one in the legend
  CHECK(count_of(page, "class=\"sent\"/>") == 2 + 1);
  CHECK(count_of(page, "class=\"good-area\"/>") == 2 + 1);
  CHECK(count_of(page, "class=\"failed\"/>") == 2);
  CHECK(count_of(page, "class=\"plain\"/>") == 2);
  CHECK(count_of(page, "class=\"good\"/>") == 1);  // only one of them has a budget
  CHECK(contains(page, "no budget"));
  CHECK(contains(page, "prefers-color-scheme: dark"));
  CHECK(contains(page, "@media print"));
  CHECK(contains(page, "<dt>seed</dt><dd>1</dd>"));
  CHECK(
      contains(page, "4.00&nbsp;sends a call at worst: stable below 25.0&nbsp;% of the capacity."));
}

TEST_CASE("with one policy the page speaks of that one") {
  auto options = outage();
  options.policies.pop_back();
  const auto page = html_of(simulate(options).value(), "");
  CHECK(contains(page, "<h1>standard: "));
  CHECK(!contains(page, "does best"));
}

TEST_CASE("the drawing is a whole SVG with the same comparison") {
  const auto drawing = svg_of(report_of_outage());
  CHECK(drawing.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(drawing.ends_with("</svg>\n"));
  CHECK(contains(drawing, "four &lt;times&gt;"));
  CHECK(contains(drawing, "<style>"));
}

TEST_CASE("the axes of a chart of small values end at 1") {
  SimulationOptions options;
  options.policies = {{"it", policy_of(R"({"max_attempts": 1, "budget": "none"})")}};
  options.model = model_of("fail:probability=0.5");
  options.load.rate = 0.02;
  options.duration = 600s;
  const auto report = simulate(options).value();
  for (const auto& text : {svg_of(report), html_of(report, "")}) {
    double highest = 0;
    constexpr std::string_view kLabel = "text-anchor=\"end\">";
    for (auto at = text.find(kLabel); at != std::string::npos; at = text.find(kLabel, at + 1)) {
      highest = std::max(highest, std::stod(text.substr(at + kLabel.size(), 20)));
    }
    CHECK(highest == 1);
  }
}

TEST_CASE("the axes of a chart have numbers that differ" * doctest::test_suite("large")) {
  // The label of each line of the grid: what stands at the right end of "…text-anchor="end">".
  for (const double rate : {0.05, 0.4, 1.0, 3.0, 17.0, 240.0, 999.0, 10'500.0, 31'000.0}) {
    CAPTURE(rate);
    SimulationOptions options;
    options.policies = {{"it", policy_of(R"({"max_attempts": 1})")}};
    options.model = model_of("fail:probability=0.5");
    options.load.rate = rate;
    options.duration = rate < 100 ? 60s : 3s;
    const auto drawing = svg_of(simulate(options).value());
    std::vector<std::string> labels;
    constexpr std::string_view kLabel = "text-anchor=\"end\">";
    for (auto at = drawing.find(kLabel); at != std::string::npos;
         at = drawing.find(kLabel, at + 1)) {
      const auto from = at + kLabel.size();
      labels.push_back(drawing.substr(from, drawing.find('<', from) - from));
    }
    CHECK(labels.size() >= 2);
    CHECK(labels.size() <= 6);
    std::sort(labels.begin(), labels.end());
    CHECK(std::adjacent_find(labels.begin(), labels.end()) == labels.end());
  }
}

TEST_CASE("policies that do equally well are both called best" * doctest::test_suite("large")) {
  auto options = outage();
  options.policies = {options.policies[0], options.policies[1], options.policies[0]};
  options.policies[2].name = "again";
  CHECK(contains(html_of(simulate(options).value(), ""), "<h1>standard and again do best: "));
  options.policies = {options.policies[0], options.policies[2]};
  CHECK(contains(html_of(simulate(options).value(), ""), "<h1>all do the same: "));
}
