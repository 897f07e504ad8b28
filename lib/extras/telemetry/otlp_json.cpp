// Writes the JSON of OTLP. Names are in lower camel case, ids in hex, enums are numbers, and 64-bit
// integers are strings.
#include "words.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/telemetry/otlp.hpp>

#include <algorithm>

namespace httpretry {
namespace {

using telemetry::JsonList;
using telemetry::JsonObject;
using telemetry::number_text;

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

std::string unix_nano(WallTime at) {
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch());
  return std::to_string(time.count());
}

// Appends {"key":KEY,"value":{"stringValue":VALUE}}, for example: the key names the type.
void put_attribute(JsonList& list, std::string_view key, const SpanAttribute::Value& value) {
  JsonObject attribute(list.item());
  attribute.text("key", key);
  JsonObject object(attribute.key("value"));
  if (const auto* text = std::get_if<std::string>(&value)) {
    object.text("stringValue", *text);
  } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
    object.text("intValue", std::to_string(*number));
  } else if (const auto* real = std::get_if<double>(&value)) {
    object.number("doubleValue", *real);
  } else {
    object.boolean("boolValue", std::get<bool>(value));
  }
}

void put_attributes(JsonObject& object, const std::vector<SpanAttribute>& attributes) {
  JsonList list(object.key("attributes"));
  for (const auto& attribute : attributes) put_attribute(list, attribute.key, attribute.value);
}

void put_resource(JsonObject& object, const OtlpOptions& options) {
  JsonObject resource(object.key("resource"));
  JsonList list(resource.key("attributes"));
  put_attribute(list, "service.name", options.service_name);
  for (const auto& [key, value] : options.resource) put_attribute(list, key, value);
}

void put_scope(JsonObject& object) {
  JsonObject scope(object.key("scope"));
  scope.text("name", "httpretry");
  scope.text("version", HTTPRETRY_VERSION);
}

// Returns {"resourceSpans":[{"resource":…,"scopeSpans":[{"scope":…,"spans":[…]}]}]}, for example:
// the keys are those of the three lists, and `put_items(list)` writes the innermost one.
template <class PutItems>
std::string envelope(std::string_view resources_key, std::string_view scopes_key,
                     std::string_view items_key, const OtlpOptions& options,
                     const PutItems& put_items) {
  std::string json;
  {  // closes all objects and lists before the return
    JsonObject root(json);
    JsonList resources(root.key(resources_key));
    JsonObject resource(resources.item());
    put_resource(resource, options);
    JsonList scopes(resource.key(scopes_key));
    JsonObject scope(scopes.item());
    put_scope(scope);
    JsonList items(scope.key(items_key));
    put_items(items);
  }
  return json;
}

// Appends a span of a trace in OTLP's JSON: its ids, name, kind, times, attributes, events and
// status. In this format, enums are numbers, and 64-bit integers such as times are strings.
// Optional members are written only if they are set.
void put_span(JsonList& list, const Span& span) {
  JsonObject object(list.item());
  object.text("traceId", span.trace.hex());
  object.text("spanId", span_id_hex(span.id));
  if (span.parent != 0) object.text("parentSpanId", span_id_hex(span.parent));
  if (!span.state.empty()) object.text("traceState", span.state);  // the header "tracestate"
  object.number("flags", static_cast<int>(span.flags));
  object.text("name", span.name());
  object.number("kind", static_cast<int>(span.kind));
  object.text("startTimeUnixNano", unix_nano(span.start));
  object.text("endTimeUnixNano", unix_nano(span.end));
  put_attributes(object, span.attributes());
  if (!span.events.empty()) {
    JsonList events(object.key("events"));
    for (const auto& event : span.events) {
      JsonObject entry(events.item());
      entry.text("timeUnixNano", unix_nano(event.at));
      entry.text("name", event.name);
      put_attributes(entry, event.attributes);
    }
  }
  JsonObject status(object.key("status"));  // empty if the status is unset
  if (span.outcome() != Span::Status::Unset) {
    status.number("code", static_cast<int>(span.outcome()));
  }
}

std::string dotted(std::string_view name) {
  std::string text(name);
  for (auto& c : text) c = c == '_' ? '.' : c;
  return text;
}

// Returns "http.client.request.duration" for "http_client_request_duration_seconds".
std::string metric_name(std::string_view name) {
  for (const std::string_view ending : {"_total", "_seconds"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return dotted(name);
}

// Labels of the semantic conventions have the same names as in spans. All others get the prefix
// "httpretry.".
std::string label_name(std::string_view name) {
  if (name == "http_response_status_code") return "http.response.status_code";
  constexpr std::string_view kOfConventions[] = {"http_", "server_", "network_", "error_"};
  for (const auto prefix : kOfConventions) {
    if (name.starts_with(prefix)) return dotted(name);
  }
  return "httpretry." + std::string(name);
}

void put_exemplars(JsonObject& point, const MetricSeries& series) {
  JsonList list(point.key("exemplars"));
  for (const auto& each : series.exemplars) {
    if (!each) continue;
    JsonObject exemplar(list.item());
    exemplar.text("timeUnixNano", unix_nano(each->at));
    exemplar.number("asDouble", each->value);
    exemplar.text("traceId", each->trace_id);
    exemplar.text("spanId", each->span_id);
  }
}

// Appends a data point in OTLP's JSON: the labels of the series, the times, and the value of a
// counter or gauge, or a whole histogram. In this format, 64-bit integers such as counts are
// strings.
void put_point(JsonList& list, const MetricsSnapshot& snapshot, const MetricFamily& family,
               const MetricSeries& series) {
  JsonObject point(list.item());
  {  // the destructor closes the list
    JsonList attributes(point.key("attributes"));
    for (const auto& [name, value] : series.labels) {
      put_attribute(attributes, label_name(name), value);
    }
  }
  if (family.kind != MetricFamily::Kind::Gauge) {  // the others count since that time
    point.text("startTimeUnixNano", unix_nano(snapshot.since));
  }
  point.text("timeUnixNano", unix_nano(snapshot.at));
  if (family.kind != MetricFamily::Kind::Histogram) return point.number("asDouble", series.value);
  point.text("count", std::to_string(series.count()));
  point.number("sum", series.value);  // the value of a histogram is its sum
  {
    JsonList counts(point.key("bucketCounts"));
    for (const auto count : series.counts) counts.item() += '"' + std::to_string(count) + '"';
  }
  {
    JsonList bounds(point.key("explicitBounds"));
    for (const auto bound : family.bounds) bounds.item() += number_text(bound);
  }
  // An exemplar is a sample of a bucket with the trace that it belongs to.
  const bool has_exemplar = std::ranges::any_of(
      series.exemplars, [](const auto& exemplar) { return exemplar.has_value(); });
  if (has_exemplar) put_exemplars(point, series);
}

// Appends a metric with a data point for each series. OTLP calls a counter a sum that only grows
// ("isMonotonic"). The values of sums and histograms are cumulative: they count since the start.
void put_family(JsonList& list, const MetricsSnapshot& snapshot, const MetricFamily& family) {
  JsonObject metric(list.item());
  metric.text("name", metric_name(family.name));
  metric.text("description", family.help);
  metric.text("unit", family.unit);
  const bool is_counter = family.kind == MetricFamily::Kind::Counter;
  const bool is_gauge = family.kind == MetricFamily::Kind::Gauge;
  JsonObject data(metric.key(is_counter ? "sum" : is_gauge ? "gauge" : "histogram"));
  {  // the destructor closes the list
    JsonList points(data.key("dataPoints"));
    for (const auto& series : family.series) put_point(points, snapshot, family, series);
  }
  if (!is_gauge) data.number("aggregationTemporality", kCumulative);
  if (is_counter) data.boolean("isMonotonic", true);
}

}  // namespace

std::string otlp_json(const std::vector<SpanPtr>& spans, const OtlpOptions& options) {
  return envelope("resourceSpans", "scopeSpans", "spans", options, [&](JsonList& list) {
    for (const auto& span : spans) put_span(list, *span);
  });
}

std::string otlp_json(const MetricsSnapshot& snapshot, const OtlpOptions& options) {
  return envelope("resourceMetrics", "scopeMetrics", "metrics", options, [&](JsonList& list) {
    for (const auto& family : snapshot.families) {
      if (!family.series.empty()) put_family(list, snapshot, family);
    }
  });
}

}  // namespace httpretry
