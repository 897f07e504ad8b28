// The JSON of the exporter, byte by byte.
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

bool has_part(const std::string& whole, std::string_view part) {
  return whole.find(part) != std::string::npos;
}

// Returns a snapshot with this family alone, between the seconds 1 and 2.
MetricsSnapshot snapshot_with(const MetricFamily& family) {
  MetricsSnapshot snapshot;
  snapshot.since = WallTime(1s);
  snapshot.at = WallTime(2s);
  snapshot.families = {MetricFamily(), family};
  return snapshot;
}

MetricFamily one_series(std::string_view name, MetricFamily::Kind kind, double value) {
  MetricFamily family;
  family.name = name;
  family.kind = kind;
  family.help = "Help.";
  family.unit = "{retry}";
  family.series.resize(1);
  family.series[0].value = value;
  return family;
}

}  // namespace

TEST_CASE("a span in the JSON of OTLP") {
  const auto span = std::make_shared<Span>();
  span->trace = {1, 0xFEDCBA9876543210};
  span->id = 0xAB;
  span->method = "GET";
  span->start = WallTime(1'700'000'000s);
  span->end = span->start + 1ms;
  const std::string ids =
      R"({"traceId":"0000000000000001fedcba9876543210","spanId":"00000000000000ab",)";
  const std::string times =
      R"("startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000001000000",)";
  const std::string method =
      R"("attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},)";
  CHECK(has_part(
      otlp_json(std::vector<SpanPtr>{span}, {}),
      R"("spans":[)" + ids + R"("flags":0,"name":"GET","kind":3,)" + times + method +
          R"({"key":"httpretry.sent","value":{"stringValue":"never"}}],"status":{}}]}]}]})"));

  span->parent = 0xCD;
  span->flags = 3;
  span->state = "a=1";
  span->status = 503;
  span->judged = true;
  span->cls = Class::Transient;
  span->wait = 1500ms;
  span->lost = true;
  SpanEvent event{"queued", span->start, {}};
  event.attributes.push_back({"httpretry.queued", 0.5});
  event.attributes.push_back({"httpretry.queued_by", std::string("rate")});
  span->events.push_back(event);
  OtlpOptions options;
  options.service_name = "shop";
  options.resource = {{"a", "b"}};
  const auto json = otlp_json(std::vector<SpanPtr>{span}, options);
  CHECK(json.starts_with(R"({"resourceSpans":[{"resource":{"attributes":[)"
                         R"({"key":"service.name","value":{"stringValue":"shop"}},)"
                         R"({"key":"a","value":{"stringValue":"b"}}]},)"
                         R"("scopeSpans":[{"scope":{"name":"httpretry","version":")"));
  CHECK(has_part(
      json, R"("spans":[)" + ids +
                R"("parentSpanId":"00000000000000cd","traceState":"a=1","flags":3,)" +
                R"("name":"GET","kind":3,)" + times + method +
                R"({"key":"http.response.status_code","value":{"intValue":"503"}},)"
                R"({"key":"error.type","value":{"stringValue":"503"}},)"
                R"({"key":"httpretry.sent","value":{"stringValue":"never"}},)"
                R"({"key":"httpretry.class","value":{"stringValue":"transient"}},)"
                R"({"key":"httpretry.wait","value":{"doubleValue":1.5}},)"
                R"({"key":"httpretry.lost","value":{"boolValue":true}}],)"
                R"("events":[{"timeUnixNano":"1700000000000000000","name":"queued","attributes":[)"
                R"({"key":"httpretry.queued","value":{"doubleValue":0.5}},)"
                R"({"key":"httpretry.queued_by","value":{"stringValue":"rate"}}]}],)"
                R"("status":{"code":2}}]}]}]})"));
}

TEST_CASE("a counter, a gauge and a histogram in the JSON of OTLP") {
  auto counter = one_series("httpretry_things_total", MetricFamily::Kind::Counter, 3);
  counter.series[0].labels = {
      {"endpoint", "a"}, {"http_response_status_code", "503"}, {"error_type", "503"}};
  CHECK(has_part(otlp_json(snapshot_with(counter), {}),
                 R"("metrics":[{"name":"httpretry.things","description":"Help.","unit":"{retry}",)"
                 R"("sum":{"dataPoints":[{"attributes":[)"
                 R"({"key":"httpretry.endpoint","value":{"stringValue":"a"}},)"
                 R"({"key":"http.response.status_code","value":{"stringValue":"503"}},)"
                 R"({"key":"error.type","value":{"stringValue":"503"}}],)"
                 R"("startTimeUnixNano":"1000000000","timeUnixNano":"2000000000","asDouble":3}],)"
                 R"("aggregationTemporality":2,"isMonotonic":true}}]}]}]})"));
  const auto gauge = one_series("httpretry_level", MetricFamily::Kind::Gauge, 1.5);
  CHECK(has_part(otlp_json(snapshot_with(gauge), {}),
                 R"("gauge":{"dataPoints":[{"attributes":[],"timeUnixNano":"2000000000",)"
                 R"("asDouble":1.5}]}}]}]}]})"));

  auto histogram = one_series("x_seconds", MetricFamily::Kind::Histogram, 21.25);
  histogram.bounds = {0.5, 10};
  auto& series = histogram.series[0];
  series.counts = {2, 0, 1};
  const std::string points =
      R"("metrics":[{"name":"x","description":"Help.","unit":"{retry}","histogram":{"dataPoints":[)"
      R"({"attributes":[],"startTimeUnixNano":"1000000000","timeUnixNano":"2000000000",)"
      R"("count":"3","sum":21.25,"bucketCounts":["2","0","1"],"explicitBounds":[0.5,10])";
  const std::string end = R"(}],"aggregationTemporality":2}}]}]}]})";
  CHECK(has_part(otlp_json(snapshot_with(histogram), {}), points + end));
  series.exemplars.resize(3);
  CHECK(has_part(otlp_json(snapshot_with(histogram), {}), points + end));
  auto& exemplar = series.exemplars[1].emplace();
  exemplar.trace_id = "0af7651916cd43dd8448eb211c80319c";
  exemplar.span_id = "b7ad6b7169203331";
  exemplar.value = 0.75;
  exemplar.at = WallTime(1500ms);
  CHECK(
      has_part(otlp_json(snapshot_with(histogram), {}),
               points +
                   R"(,"exemplars":[{"timeUnixNano":"1500000000","asDouble":0.75,)"
                   R"("traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331"}])" +
                   end));
}
