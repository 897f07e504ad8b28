// The texts of a report that was made by hand, byte for byte.
#include "lib/extras/simulate/chart.hpp"
#include "lib/extras/simulate/page.hpp"
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using FiveCounts = std::array<std::uint32_t, 5>;

// A run of half a second that is down only for a moment.
SimulationRun good_run() {
  SimulationRun run;
  run.policy = "a & b";
  run.calls = 20;
  run.succeeded = 19;
  run.sends = 22;
  run.not_sent = 3;
  run.wasted = 2219;
  run.budget_refusals = 124;
  run.peak_sends_per_second = 1200;
  run.p50_ms = 60;
  run.p99_ms = 776;
  run.finished_at_s = 0.5;
  run.verdict = SimulationRun::Verdict::Recovered;
  run.recovered_after = 14;
  run.has_budget = true;
  run.bounds.sends_at_first = 5;
  run.bounds.w_l = 1.2;
  run.bounds.stable_below = 1 / 1.2;
  run.bounds.burst = 100;
  const FiveCounts offered{5, 7, 5, 3, 0};
  const FiveCounts sent{6, 7, 5, 3, 1};
  const FiveCounts succeeded{4, 5, 5, 3, 2};
  const FiveCounts failed{0, 1, 0, 0, 0};
  const FiveCounts in_flight{2, 4, 2, 1, 0};
  const std::array<float, 5> budget{500, 250, 125, 125, 500};
  for (std::size_t i = 0; i < 5; ++i) {
    auto& sample = run.samples.emplace_back();
    sample.offered = offered[i];
    sample.sent = sent[i];
    sample.succeeded = succeeded[i];
    sample.failed = failed[i];
    sample.in_flight = in_flight[i];
    sample.budget = budget[i];
  }
  return run;
}

// A run whose only call never ends.
SimulationRun bad_run() {
  SimulationRun run;
  run.policy = "never";
  run.calls = 1;
  run.sends = 1;
  run.unfinished = 1;
  run.peak_sends_per_second = 1;
  run.finished_at_s = 12;
  run.verdict = SimulationRun::Verdict::Metastable;
  auto& sample = run.samples.emplace_back();
  sample.offered = sample.sent = sample.in_flight = 1;
  return run;
}

SimulationReport made_report() {
  SimulationReport report;
  report.seed = 7;
  report.clients = 1;
  report.duration = 400ms;
  report.load.rate = 50;
  report.model.triggers.emplace_back(100ms, 100ms).fail = 0.5;
  report.runs = {good_run(), bad_run()};
  return report;
}

// Only what headline() looks at. Of 10 000 calls.
SimulationRun run_named(const char* name, std::uint64_t succeeded, std::uint64_t sends,
                        std::optional<double> recovered_after = std::nullopt) {
  SimulationRun run;
  run.policy = name;
  run.calls = 10'000;
  run.succeeded = succeeded;
  run.sends = sends;
  run.recovered_after = recovered_after;
  return run;
}

std::string headline_of(std::vector<SimulationRun> runs) {
  SimulationReport report;
  report.runs = std::move(runs);
  return simulation::headline(report);
}

}  // namespace

TEST_CASE("the table of a report is aligned, and has notes on each policy") {
  CHECK(
      table_of(made_report()) ==
      R"(fail: 50.0 % of requests get a 500; network 5ms each way; from 100ms for 100ms 50.0 % get a 503
open: 50 calls a second; 1 client, 400ms, seed 7

policy  calls  succeed  sends/call  peak/s      p50     p99    ends  verdict
a & b      20   95.0 %        1.10   1 200  60.0 ms  776 ms   0.5 s  recovered in 14 s
never       1      0 %        1.00       1        -       -  12.0 s  metastable

a & b
  recovered in 14 s: 95.0 % of all calls succeed, 1.10 sends a call
  1.20 sends a call at worst: stable below 83.3 % of the capacity; after 100 retries of a full budget (5 sends a call)
  124 calls ended because their budget was spent
  3 calls were held back and never sent
  2 219 responses arrived after their client had given up

never
  metastable: it stays at 1.0 sends a call, 0.0 of 10 calls a second succeed
  no limit on sends: no load is safe
  1 call never ends: the server does not respond, and the policy has no time limit
)");
}

TEST_CASE("the drawing of a report has a row for each policy, with the same axes") {
  const std::string start =
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 288" role="img" aria-label="a &amp; b does best: recovered in 14 s, 95.0 % of calls succeed with 1.10 sends each. never does worst: metastable, 0 % of calls succeed with 1.00 sends each.")";
  const std::string rest = R"(<text x="20.0" y="18.0" class="small">per second:</text>
<line x1="290" y1="14" x2="316" y2="14" class="offered"/>
<text x="322.0" y="18.0" class="small">calls begun</text>
<line x1="415" y1="14" x2="441" y2="14" class="sent"/>
<text x="447.0" y="18.0" class="small">requests sent</text>
<rect x="550" y="7" width="26" height="12" class="good-area"/>
<text x="582.0" y="18.0" class="small">calls that succeeded</text>
<rect x="725" y="7" width="26" height="12" class="band"/>
<text x="757.0" y="18.0" class="small">something is wrong</text>
<text x="20.0" y="52.0" class="name">a &amp; b</text>
<text x="20.0" y="72.0" class="yes">✓ recovered in 14 s</text>
<text x="20.0" y="92.0">95.0 % of calls succeed</text>
<text x="20.0" y="110.0">1.10 sends a call</text>
<text x="20.0" y="126.0" class="small">half of them within 60.0 ms</text>
<rect x="421.0" y="34.0" width="131.0" height="92.0" class="band"/>
<line x1="290.0" y1="126.0" x2="945.0" y2="126.0" class="axis"/>
<text x="284.0" y="130.0" class="small" text-anchor="end">0</text>
<line x1="290.0" y1="100.7" x2="945.0" y2="100.7" class="grid"/>
<text x="284.0" y="104.7" class="small" text-anchor="end">20</text>
<line x1="290.0" y1="75.5" x2="945.0" y2="75.5" class="grid"/>
<text x="284.0" y="79.5" class="small" text-anchor="end">40</text>
<line x1="290.0" y1="50.2" x2="945.0" y2="50.2" class="grid"/>
<text x="284.0" y="54.2" class="small" text-anchor="end">60</text>
<polygon points="355.5,126.0 355.5,75.5 486.5,62.8 617.5,62.8 748.5,88.1 879.5,100.7 879.5,126.0" class="good-area"/>
<polyline points="355.5,50.2 486.5,37.5 617.5,62.8 748.5,88.1 879.5,113.4" class="sent"/>
<polyline points="355.5,62.8 486.5,37.5 617.5,62.8 748.5,88.1 879.5,126.0" class="offered"/>
<text x="20.0" y="176.0" class="name">never</text>
<text x="20.0" y="196.0" class="no">✗ metastable</text>
<text x="20.0" y="216.0">0 % of calls succeed</text>
<text x="20.0" y="234.0">1.00 sends a call</text>
<text x="20.0" y="250.0" class="small"></text>
<rect x="421.0" y="158.0" width="131.0" height="92.0" class="band"/>
<line x1="290.0" y1="250.0" x2="945.0" y2="250.0" class="axis"/>
<text x="284.0" y="254.0" class="small" text-anchor="end">0</text>
<line x1="290.0" y1="224.7" x2="945.0" y2="224.7" class="grid"/>
<text x="284.0" y="228.7" class="small" text-anchor="end">20</text>
<line x1="290.0" y1="199.5" x2="945.0" y2="199.5" class="grid"/>
<text x="284.0" y="203.5" class="small" text-anchor="end">40</text>
<line x1="290.0" y1="174.2" x2="945.0" y2="174.2" class="grid"/>
<text x="284.0" y="178.2" class="small" text-anchor="end">60</text>
<text x="290.0" y="265.0" class="small" text-anchor="middle">0.0</text>
<text x="421.0" y="265.0" class="small" text-anchor="middle">0.1 s</text>
<text x="552.0" y="265.0" class="small" text-anchor="middle">0.2 s</text>
<text x="683.0" y="265.0" class="small" text-anchor="middle">0.3 s</text>
<text x="814.0" y="265.0" class="small" text-anchor="middle">0.4 s</text>
<text x="945.0" y="265.0" class="small" text-anchor="middle">0.5 s</text>
<polygon points="355.5,250.0 355.5,250.0 486.5,250.0 617.5,250.0 748.5,250.0 879.5,250.0 879.5,250.0" class="good-area"/>
<polyline points="355.5,237.4 486.5,250.0 617.5,250.0 748.5,250.0 879.5,250.0" class="sent"/>
<polyline points="355.5,237.4 486.5,250.0 617.5,250.0 748.5,250.0 879.5,250.0" class="offered"/>
</svg>
)";
  const auto report = made_report();
  CHECK(svg_of(report) ==
        start + " width=\"960\" height=\"288\">\n<style>\n" + std::string(simulation::style()) +
            "</style>\n<rect width=\"960\" height=\"288\" class=\"paper\"/>\n" + rest);
  CHECK(simulation::comparison(report, simulation::Drawing::Element) == start + ">\n" + rest);
  // Without triggers, the legend does not explain their color.
  auto calm = report;
  calm.model.triggers.clear();
  CHECK(svg_of(calm).find("something is wrong") == std::string::npos);
}

TEST_CASE("the page of a report has its headline, its numbers, and charts of each policy") {
  const auto report = made_report();
  const auto page = html_of(report, "command");
  const std::string best =
      "<h1>a &amp; b does best: recovered in 14&nbsp;s, 95.0&nbsp;% of calls succeed with "
      "1.10&nbsp;sends each. never does worst: metastable, 0&nbsp;% of calls succeed with "
      "1.00&nbsp;sends each.</h1>\n"
      "<p class=\"faint\">fail: 50.0&nbsp;% of requests get a 500; network 5ms each way; from "
      "100ms "
      "for 100ms 50.0&nbsp;% get a 503; open: 50&nbsp;calls a second; 1 client. All charts have "
      "the "
      "same scale.</p>\n<div class=\"wide\"><svg ";
  const std::string numbers = R"(<h2>Numbers</h2>
<div class="wide"><table>
<tr><th>policy</th><th>calls</th><th>succeed</th><th>sends a call</th><th>peak a second</th><th>p50</th><th>p99</th><th>arrived too late</th><th>budget spent</th><th>held back</th><th>verdict</th></tr>
<tr><td>a &amp; b</td><td>20</td><td>95.0 %</td><td>1.10</td><td>1 200</td><td>60.0 ms</td><td>776 ms</td><td>2 219</td><td>124</td><td>3</td><td class="yes">recovered in 14 s</td></tr>
<tr><td>never</td><td>1</td><td>0 %</td><td>1.00</td><td>1</td><td>-</td><td>-</td><td>0</td><td>0</td><td>0</td><td class="no">metastable</td></tr>
</table></div>
<h2>Each policy</h2>
)";
  const std::string good = R"(<section>
<h3>a &amp; b</h3>
<p>recovered in 14&nbsp;s: 95.0&nbsp;% of all calls succeed, 1.10&nbsp;sends a call.</p>
<p class="faint">1.20&nbsp;sends a call at worst: stable below 83.3&nbsp;% of the capacity; after 100&nbsp;retries of a full budget (5&nbsp;sends a call).</p>
<div class="wide"><svg viewBox="0 0 960 124" role="img" aria-label="failed, in flight and budget of a &amp; b">
<text x="50.0" y="14.0" class="small">calls that failed, a second</text>
<rect x="100.0" y="22.0" width="50.0" height="80.0" class="band"/>
<line x1="50.0" y1="102.0" x2="300.0" y2="102.0" class="axis"/>
<text x="44.0" y="106.0" class="small" text-anchor="end">0</text>
<line x1="50.0" y1="63.5" x2="300.0" y2="63.5" class="grid"/>
<text x="44.0" y="67.5" class="small" text-anchor="end">5</text>
<line x1="50.0" y1="25.1" x2="300.0" y2="25.1" class="grid"/>
<text x="44.0" y="29.1" class="small" text-anchor="end">10</text>
<text x="50.0" y="117.0" class="small" text-anchor="middle">0.0</text>
<text x="150.0" y="117.0" class="small" text-anchor="middle">0.2 s</text>
<text x="250.0" y="117.0" class="small" text-anchor="middle">0.4 s</text>
<polyline points="75.0,102.0 125.0,25.1 175.0,102.0 225.0,102.0 275.0,102.0" class="failed"/>
<text x="370.0" y="14.0" class="small">calls in flight</text>
<rect x="420.0" y="22.0" width="50.0" height="80.0" class="band"/>
<line x1="370.0" y1="102.0" x2="620.0" y2="102.0" class="axis"/>
<text x="364.0" y="106.0" class="small" text-anchor="end">0</text>
<line x1="370.0" y1="63.5" x2="620.0" y2="63.5" class="grid"/>
<text x="364.0" y="67.5" class="small" text-anchor="end">2</text>
<line x1="370.0" y1="25.1" x2="620.0" y2="25.1" class="grid"/>
<text x="364.0" y="29.1" class="small" text-anchor="end">4</text>
<text x="370.0" y="117.0" class="small" text-anchor="middle">0.0</text>
<text x="470.0" y="117.0" class="small" text-anchor="middle">0.2 s</text>
<text x="570.0" y="117.0" class="small" text-anchor="middle">0.4 s</text>
<polyline points="395.0,63.5 445.0,25.1 495.0,63.5 545.0,82.8 595.0,102.0" class="plain"/>
<text x="690.0" y="14.0" class="small">budget: tokens left, mean of the clients</text>
<rect x="740.0" y="22.0" width="50.0" height="80.0" class="band"/>
<line x1="690.0" y1="102.0" x2="940.0" y2="102.0" class="axis"/>
<text x="684.0" y="106.0" class="small" text-anchor="end">0</text>
<line x1="690.0" y1="71.2" x2="940.0" y2="71.2" class="grid"/>
<text x="684.0" y="75.2" class="small" text-anchor="end">200</text>
<line x1="690.0" y1="40.5" x2="940.0" y2="40.5" class="grid"/>
<text x="684.0" y="44.5" class="small" text-anchor="end">400</text>
<text x="690.0" y="117.0" class="small" text-anchor="middle">0.0</text>
<text x="790.0" y="117.0" class="small" text-anchor="middle">0.2 s</text>
<text x="890.0" y="117.0" class="small" text-anchor="middle">0.4 s</text>
<polyline points="715.0,25.1 765.0,63.5 815.0,82.8 865.0,82.8 915.0,25.1" class="good"/>
</svg></div>
</section>
)";
  const std::string bad = R"(<section>
<h3>never</h3>
<p>metastable: it stays at 1.0&nbsp;sends a call, 0.0&nbsp;of 10&nbsp;calls a second succeed.</p>
<p class="faint">no limit on sends: no load is safe.</p>
)";
  const std::string bad_charts = R"(
<polyline points="75.0,102.0 125.0,102.0 175.0,102.0 225.0,102.0 275.0,102.0" class="failed"/>
)";
  const std::string bad_end = R"(
<polyline points="395.0,82.8 445.0,82.8 495.0,82.8 545.0,82.8 595.0,82.8" class="plain"/>
<text x="690.0" y="14.0" class="small">no budget</text>
</svg></div>
</section>
<h2>What was simulated</h2>
<dl>
<dt>server</dt><dd>fail: 50.0&nbsp;% of requests get a 500; network 5ms each way; from 100ms for 100ms 50.0&nbsp;% get a 503</dd>
<dt>load</dt><dd>open: 50&nbsp;calls a second</dd>
<dt>clients</dt><dd>1, each with its own budget and guards</dd>
<dt>time</dt><dd>400ms; calls in flight then run to their end</dd>
<dt>seed</dt><dd>7</dd>
</dl>
)";
  for (const auto& part : {best, numbers + good + bad, bad_charts, bad_end}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
  auto two = report;
  two.clients = 2;
  CHECK(html_of(two, "").find("; 2 clients. All charts") != std::string::npos);
}

TEST_CASE("the headline compares the state, the successes, the recovery and the sends, in order") {
  CHECK(headline_of({}) == "no policy");
  CHECK(headline_of({run_named("a", 10'000, 12'345)}) ==
        "a: stable, 100 % of calls succeed with 1.23 sends each");
  // A server that is down comes last, whatever else is better.
  auto down = run_named("down", 10'000, 10'000);
  down.verdict = SimulationRun::Verdict::Overloaded;
  CHECK(headline_of({down, run_named("up", 1, 40'000)}) ==
        "up does best: stable, 0.1 % of calls succeed with 4.00 sends each. down does worst: "
        "overloaded, 100 % of calls succeed with 1.00 sends each.");
  const auto winner = [](const SimulationRun& a, const SimulationRun& b) {
    const auto text = headline_of({a, b});
    return text.substr(0, text.find(':'));
  };
  // More successes than others count from a difference of more than a thousandth on.
  CHECK(winner(run_named("a", 9000, 40'000), run_named("b", 8980, 10'000)) == "a does best");
  CHECK(winner(run_named("a", 8980, 10'000), run_named("b", 9000, 40'000)) == "b does best");
  CHECK(winner(run_named("a", 9000, 40'000), run_named("b", 8995, 10'000)) == "b does best");
  // The one that recovers sooner, or at all.
  CHECK(winner(run_named("a", 9000, 40'000, 3), run_named("b", 9000, 10'000, 5)) == "a does best");
  CHECK(winner(run_named("a", 9000, 10'000, 5), run_named("b", 9000, 40'000, 3)) == "b does best");
  CHECK(winner(run_named("a", 9000, 10'000), run_named("b", 9000, 40'000, 3)) == "b does best");
  // The sends, if they differ by more than 2 %.
  CHECK(winner(run_named("a", 9000, 10'000), run_named("b", 9000, 10'300)) == "a does best");
  CHECK(winner(run_named("a", 9000, 10'300), run_named("b", 9000, 10'000)) == "b does best");
  CHECK(winner(run_named("a", 9000, 10'000), run_named("b", 9000, 10'100)) == "all do the same");
  CHECK(headline_of({run_named("a", 9000, 10'000), run_named("b", 9000, 10'000)}) ==
        "all do the same: stable, 90.0 % of calls succeed with 1.00 sends each.");
  CHECK(headline_of({run_named("a", 9000, 10'000), run_named("b", 9000, 10'000),
                     run_named("c", 9000, 10'000), run_named("d", 9000, 20'000)}) ==
        "a, b and c do best: stable, 90.0 % of calls succeed with 1.00 sends each. d does worst: "
        "stable, 90.0 % of calls succeed with 2.00 sends each.");
}

TEST_CASE("a name that is too long for a drawing is cut between two characters") {
  using simulation::shortened;
  CHECK(shortened("abcdef", 6) == "abcdef");
  CHECK(shortened("abcdefg", 6) == "abcde\u2026");
  CHECK(shortened("abcd\u00e9g", 6) == "abcd\u2026");
  CHECK(shortened("abc\u00e9fg", 6) == "abc\u00e9\u2026");
  CHECK(shortened("\x80\x80\x80\x80", 3) == "\u2026");  // not UTF-8
  auto report = made_report();
  report.runs[0].policy = std::string(27, 'x');
  report.runs[1].policy = std::string(28, 'y');
  const auto drawing = svg_of(report);
  CHECK(drawing.find(">" + std::string(27, 'x') + "</text>") != std::string::npos);
  CHECK(drawing.find(">" + std::string(26, 'y') + "\u2026</text>") != std::string::npos);
}

TEST_CASE("the JSON of a report has rounded numbers, and the sums of each second") {
  SimulationReport report;
  report.duration = 1500ms;
  auto& run = report.runs.emplace_back();
  run.calls = 3;
  run.succeeded = 1;
  run.sends = 4;
  run.not_sent = 5;
  run.wasted = 6;
  run.budget_refusals = 7;
  run.unfinished = 8;
  run.peak_sends_per_second = 12;
  run.p50_ms = 60.12345;
  run.p95_ms = 61.98765;
  run.p99_ms = 62.5;
  run.finished_at_s = 1.23456;
  run.herd = 2.34567;
  run.recovered_after = 3.456789;
  run.has_budget = true;
  run.bounds.sends_at_first = 5;
  run.bounds.w_l = 1.234567;
  run.bounds.stable_below = 0.765432;
  run.bounds.burst = 2.5;
  run.bounds.always = 0;
  for (std::uint32_t i = 0; i < 12; ++i) {
    auto& sample = run.samples.emplace_back();
    sample.offered = i;
    sample.sent = 2 * i;
    sample.succeeded = 3 * i;
    sample.failed = 1;
    sample.in_flight = 100 + i;
    sample.budget = static_cast<float>(i) + 0.125F;
  }
  const auto json = nlohmann::json::parse(json_of(report));
  CHECK(json.at("duration_s") == 1.5);
  const auto expected = nlohmann::json::parse(R"({"policy": "", "calls": 3, "succeeded": 1,
      "sends": 4, "sends_per_call": 1.3333, "peak_sends_per_second": 12, "p50_ms": 60.123,
      "p95_ms": 61.988, "p99_ms": 62.5, "finished_at_s": 1.235, "recovered_after_s": 3.4568,
      "verdict": "stable",
      "sentence": "stable: 33.3 % of all calls succeed, 1.33 sends a call", "w_l": 1.2346,
      "w_l_at_first": 5.0, "budget_burst": 2.5, "budget_always": 0.0, "stable_below": 0.7654,
      "unfinished": 8, "not_sent": 5, "wasted": 6, "budget_refusals": 7, "herd": 2.346,
      "per_second": {"offered": [45, 21], "sent": [90, 42], "succeeded": [135, 63],
                     "failed": [10, 2], "in_flight": [109, 111], "budget": [9.1, 11.1]}})");
  const bool same = json.at("runs").at(0) == expected;
  CHECK_MESSAGE(same, json.at("runs").at(0).dump());
}
