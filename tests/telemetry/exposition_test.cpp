// The two text formats, byte by byte.
#include "tests/client/conversation.hpp"

#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace httpretry;

namespace {

MetricsSnapshot sample() {
  MetricFamily counter;
  counter.name = "httpretry_retries_total";
  counter.help = "Retries \\ and\nmore \"quoted\".";
  counter.series.resize(1);
  counter.series[0].labels = {{"endpoint", "a\\b\"c\nd"}};
  counter.series[0].value = 3;

  MetricFamily histogram;
  histogram.name = "x_seconds";
  histogram.help = "Time.";
  histogram.kind = MetricFamily::Kind::Histogram;
  histogram.unit = "s";
  histogram.bounds = {0.5, 10};
  histogram.series.resize(1);
  auto& series = histogram.series[0];
  series.value = 21.25;
  series.counts = {2, 0, 1};
  series.exemplars.resize(3);
  series.exemplars[0].emplace();
  series.exemplars[0]->trace_id = "0af7651916cd43dd8448eb211c80319c";
  series.exemplars[0]->span_id = "b7ad6b7169203331";
  series.exemplars[0]->value = 0.25;
  series.exemplars[0]->at = WallTime(std::chrono::milliseconds(1'520'879'607'789));

  MetricFamily empty;
  empty.name = "nothing";

  MetricsSnapshot snapshot;
  snapshot.families = {counter, histogram, empty};
  return snapshot;
}

}  // namespace

TEST_CASE("the text format 0.0.4") {
  CHECK(prometheus_text(sample()) ==
        R"(# HELP httpretry_retries_total Retries \\ and\nmore "quoted".
# TYPE httpretry_retries_total counter
httpretry_retries_total{endpoint="a\\b\"c\nd"} 3
# HELP x_seconds Time.
# TYPE x_seconds histogram
x_seconds_bucket{le="0.5"} 2
x_seconds_bucket{le="10"} 2
x_seconds_bucket{le="+Inf"} 3
x_seconds_sum 21.25
x_seconds_count 3
)");
}

TEST_CASE("OpenMetrics: the name of a counter, units, exemplars and the end") {
  CHECK(openmetrics_text(sample()) ==
        R"(# HELP httpretry_retries Retries \\ and\nmore \"quoted\".
# TYPE httpretry_retries counter
httpretry_retries_total{endpoint="a\\b\"c\nd"} 3
# HELP x_seconds Time.
# TYPE x_seconds histogram
# UNIT x_seconds seconds
x_seconds_bucket{le="0.5"} 2 # {trace_id="0af7651916cd43dd8448eb211c80319c",span_id="b7ad6b7169203331"} 0.25 1520879607.789
x_seconds_bucket{le="10.0"} 2
x_seconds_bucket{le="+Inf"} 3
x_seconds_sum 21.25
x_seconds_count 3
# EOF
)");
}

TEST_CASE("a gauge, and numbers that are none") {
  MetricFamily gauge;
  gauge.name = "level";
  gauge.kind = MetricFamily::Kind::Gauge;
  gauge.series.resize(4);
  gauge.series[0].value = std::numeric_limits<double>::infinity();
  gauge.series[1].value = -std::numeric_limits<double>::infinity();
  gauge.series[2].value = std::numeric_limits<double>::quiet_NaN();
  gauge.series[3].value = -0.5;
  MetricsSnapshot snapshot;
  snapshot.families = {gauge};
  CHECK(prometheus_text(snapshot) ==
        "# HELP level \n# TYPE level gauge\nlevel +Inf\nlevel -Inf\nlevel NaN\nlevel -0.5\n");
  const auto json = otlp_json(snapshot, {});
  CHECK(json.find(R"("asDouble":null},)") != std::string::npos);
  CHECK(json.find(R"("asDouble":-0.5}])") != std::string::npos);
  CHECK(json.find("Inf") == std::string::npos);
  CHECK(json.find("NaN") == std::string::npos);
}

TEST_CASE("a scraper gets the format that it accepts") {
  const auto numbers = metrics();
  CHECK(numbers->page("application/openmetrics-text;version=1.0.0,text/plain;q=0.5").type ==
        kOpenMetricsType);
  CHECK(numbers->page("text/plain;version=0.0.4").type == kPrometheusType);
  CHECK(numbers->page("").type == kPrometheusType);
  CHECK(numbers->page("application/openmetrics-text").text.ends_with("# EOF\n"));
}

TEST_CASE("a name with a line break is one label") {
  const Conversation talk;
  talk.network->say(Response(200));
  const auto numbers = metrics();
  ClientOptions options;
  options.middlewares = {retry(parse_policies(R"({"version": 1, "policies": {"c\nd": {}},
      "endpoints": [{"name": "a\nb\"\\", "match": {"host": "x"}, "policy": "c\nd"}]})",
                                              "policy.json")
                                   .value())};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {numbers};
  REQUIRE(Client(options).get("http://x/"));
  CHECK(numbers->prometheus().find(R"(endpoint="a\nb\"\\",policy="c\nd")") != std::string::npos);
}
