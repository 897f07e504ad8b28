// Charts: how they divide the time, and where their lines, labels and curves are.
#include "lib/extras/simulate/chart.hpp"

#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;
using simulation::Anchor;
using simulation::Chart;
using simulation::Curve;
using simulation::Pieces;

namespace {

using Labels = std::vector<std::string>;

// Returns a report with one run that has this many samples.
SimulationReport report_with(std::size_t samples, Duration duration, Load::Kind kind) {
  SimulationReport report;
  report.duration = duration;
  report.load.kind = kind;
  report.runs.emplace_back().samples.resize(samples);
  return report;
}

// A run whose samples all differ.
SimulationRun differing_run(std::uint32_t samples) {
  SimulationRun run;
  run.unfinished = 9;
  for (std::uint32_t i = 0; i < samples; ++i) {
    auto& sample = run.samples.emplace_back();
    sample.offered = i;
    sample.in_flight = 10 + i;
    sample.budget = static_cast<float>(100 + i);
  }
  return run;
}

Pieces pieces_with(double length, double end) {
  Pieces pieces{SimulationReport()};
  pieces.length = length;
  pieces.end = end;
  return pieces;
}

// The texts with this anchor: "end" for the values, "middle" for the times.
Labels labels_of(const std::string& svg, const std::string& anchor) {
  Labels labels;
  const auto before = "text-anchor=\"" + anchor + "\">";
  for (auto at = svg.find(before); at != std::string::npos; at = svg.find(before, at + 1)) {
    const auto from = at + before.size();
    labels.push_back(svg.substr(from, svg.find('<', from) - from));
  }
  return labels;
}

}  // namespace

TEST_CASE("a chart shows the run, or a quarter more than the duration, in at most 120 pieces") {
  struct Case {
    std::size_t samples;
    Duration duration;
    Load::Kind kind;
    double length, end;
    std::size_t count;
  };
  using Kind = Load::Kind;
  const Case cases[] = {
      {0, 60s, Kind::Open, 0.1, 0.1, 1},     {5, 400ms, Kind::Open, 0.1, 0.5, 5},
      {600, 60s, Kind::Open, 0.5, 60, 120},  {605, 60s, Kind::Open, 1, 61, 61},
      {1000, 40s, Kind::Open, 0.5, 50, 100}, {1000, 40s, Kind::Closed, 0.5, 50, 100},
      {1000, 40s, Kind::Once, 1, 100, 100},
  };
  for (const auto& each : cases) {
    CAPTURE(each.samples);
    const Pieces pieces(report_with(each.samples, each.duration, each.kind));
    CHECK(pieces.length == each.length);
    CHECK(pieces.end == each.end);
    CHECK(pieces.count() == each.count);
  }
}

TEST_CASE("a chart has the events of each piece per second, and the states at its end") {
  const auto pieces = pieces_with(0.5, 2);
  const auto run = differing_run(12);
  CHECK(pieces.rate(run, &SimulationSample::offered) == Curve{20, 70, 42, 0});
  CHECK(pieces.in_flight(run) == Curve{14, 19, 19, 9});  // those that never end are left
  CHECK(pieces.budget(run) == Curve{104, 109, 109, 109});
  CHECK(pieces.in_flight(differing_run(10)) == Curve{14, 19, 9, 9});
  CHECK(pieces.in_flight(differing_run(25)) == Curve{14, 19, 24, 29});
  CHECK(pieces.rate(differing_run(25), &SimulationSample::offered) == Curve{20, 70, 120, 170});
  CHECK(pieces_with(0.5, 1.5).rate(differing_run(25), &SimulationSample::offered) ==
        Curve{20, 70, 120});
  CHECK(simulation::most({1, 3, 2}) == 3);
  CHECK(simulation::most({}) == 0);
}

TEST_CASE("the axes of a chart are lines with values, and times below them") {
  const auto pieces = pieces_with(0.1, 0.5);
  const Chart chart(10, 20, 200, 104, pieces, 100);
  const std::string lines = R"(<line x1="10.0" y1="124.0" x2="210.0" y2="124.0" class="axis"/>
<text x="4.0" y="128.0" class="small" text-anchor="end">0</text>
<line x1="10.0" y1="74.0" x2="210.0" y2="74.0" class="grid"/>
<text x="4.0" y="78.0" class="small" text-anchor="end">50</text>
<line x1="10.0" y1="24.0" x2="210.0" y2="24.0" class="grid"/>
<text x="4.0" y="28.0" class="small" text-anchor="end">100</text>
)";
  CHECK(chart.axes(Chart::Times::Hide) == lines);
  CHECK(chart.axes() ==
        lines + R"(<text x="10.0" y="139.0" class="small" text-anchor="middle">0.0</text>
<text x="210.0" y="139.0" class="small" text-anchor="middle">0.5 s</text>
)");
}

TEST_CASE("the lines of a chart have round distances") {
  struct Case {
    double top;
    Labels values;
  };
  const Case cases[] = {
      {0, {"0", "1"}},
      {1, {"0", "0.5", "1"}},
      {3.5, {"0", "1", "2", "3"}},
      {7, {"0", "2", "4", "6"}},
      {8.75, {"0", "2.5", "5", "7.5"}},
      {17.5, {"0", "5", "10", "15"}},
      {21, {"0", "10", "20"}},
      {35, {"0", "10", "20", "30"}},
      {8750, {"0", "2500", "5000", "7500"}},
      {35'000, {"0", "10k", "20k", "30k"}},
      {87'500, {"0", "25k", "50k", "75k"}},
      {1'750'000, {"0", "500k", "1M", "1.5M"}},
      {17'500'000, {"0", "5M", "10M", "15M"}},
  };
  const auto pieces = pieces_with(0.1, 0.5);
  for (const auto& each : cases) {
    CAPTURE(each.top);
    const Chart chart(0, 0, 90, 50, pieces, each.top);
    CHECK(labels_of(chart.axes(), "end") == each.values);
  }
}

TEST_CASE("the times of a chart have usual distances, with room for each") {
  const auto times = [](double end, double width) {
    const auto pieces = pieces_with(0.1, end);
    return labels_of(Chart(10, 0, width, 50, pieces, 1).axes(), "middle");
  };
  for (const double end : {0.1, 0.2, 0.5}) {
    CHECK(times(end, 90) == Labels{"0.0", "0." + std::to_string(std::lround(10 * end)) + " s"});
  }
  for (const int end : {1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200}) {
    CAPTURE(end);
    CHECK(times(end, 90) == Labels{"0", std::to_string(end) + " s"});
    CHECK(times(end, 89) == Labels{"0"});  // the next step is longer than the chart
  }
  CHECK(times(7201, 90) == Labels{"0"});
  CHECK(times(60, 360) == Labels{"0", "20 s", "40 s", "60 s"});
}

TEST_CASE("a chart has a band for each trigger that it shows, at most up to its end") {
  const auto pieces = pieces_with(0.1, 0.5);
  const Chart chart(10, 20, 200, 104, pieces, 100);
  CHECK(chart.bands({}).empty());
  CHECK(chart.bands({Trigger(100ms, 200ms), Trigger(400ms, 1s), Trigger(500ms, 1s)}) ==
        R"(<rect x="50.0" y="20.0" width="80.0" height="104.0" class="band"/>
<rect x="170.0" y="20.0" width="40.0" height="104.0" class="band"/>
)");
}

TEST_CASE("a curve goes through the middle of each piece, and not above its chart") {
  const auto pieces = pieces_with(0.1, 0.5);
  const Chart chart(10, 20, 200, 104, pieces, 100);
  CHECK(chart.line({0, 50, 100, 200}, "sent") ==
        "<polyline points=\"30.0,124.0 70.0,74.0 110.0,24.0 150.0,20.0\" class=\"sent\"/>\n");
  CHECK(chart.area({50, 100}, "good-area") ==
        "<polygon points=\"30.0,124.0 30.0,74.0 70.0,24.0 70.0,124.0\" class=\"good-area\"/>\n");
  CHECK(chart.area({}, "good-area").empty());
}

TEST_CASE("a text of a drawing has its place, its class and its anchor, and no markup") {
  using simulation::text_at;
  CHECK(text_at(1, 2.5, "a", "") == "<text x=\"1.0\" y=\"2.5\">a</text>\n");
  CHECK(text_at(-1, 2, "a<b", "small", Anchor::Middle) ==
        "<text x=\"-1.0\" y=\"2.0\" class=\"small\" text-anchor=\"middle\">a&lt;b</text>\n");
  CHECK(text_at(1, 2, "", "small", Anchor::End) ==
        "<text x=\"1.0\" y=\"2.0\" class=\"small\" text-anchor=\"end\"></text>\n");
  CHECK(simulation::escaped("<a b=\"c\">&'") == "&lt;a b=&quot;c&quot;&gt;&amp;'");
}
