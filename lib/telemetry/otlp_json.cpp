// The JSON of OTLP: names in lower camel case, ids in hex, enums as numbers, 64-bit integers as
// texts.
#include "words.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/telemetry/otlp.hpp>

namespace httpretry {
namespace {

using telemetry::JsonObject;
using telemetry::number_text;

constexpr int kCumulative = 2;

std::string nanoseconds(WallTime at) {
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch());
  return std::to_string(time.count());
}

void put_value(std::string& json, const SpanAttribute::Value& value) {
  JsonObject object(json);
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

// `each(put)` calls put(key, value) for each attribute.
template <class Each>
void put_attributes(JsonObject& object, const Each& each) {
  auto& json = object.key("attributes") += '[';
  bool first = true;
  each([&](std::string_view key, const SpanAttribute::Value& value) {
    if (!std::exchange(first, false)) json += ',';
    JsonObject attribute(json);
    attribute.text("key", key);
    put_value(attribute.key("value"), value);
  });
  json += ']';
}

void put_attributes(JsonObject& object, const std::vector<SpanAttribute>& attributes) {
  put_attributes(object, [&](const auto& put) {
    for (const auto& attribute : attributes) put(attribute.key, attribute.value);
  });
}

template <class Range, class Put>
void put_list(std::string& json, const Range& range, const Put& put) {
  json += '[';
  bool first = true;
  for (const auto& each : range) {
    if (!std::exchange(first, false)) json += ',';
    put(each);
  }
  json += ']';
}

// {"resourceSpans":[{"resource":…,"scopeSpans":[{"scope":…,"spans":[ what `put` writes ]}]}]}
template <class Put>
std::string envelope(std::string_view resources, std::string_view scopes, std::string_view items,
                     const OtlpOptions& options, const Put& put) {
  std::string json;
  {
    JsonObject all(json);
    all.key(resources) += '[';
    {
      JsonObject one(json);
      {
        JsonObject resource(one.key("resource"));
        put_attributes(resource, [&](const auto& attribute) {
          attribute("service.name", options.service_name);
          for (const auto& [key, value] : options.resource) attribute(key, value);
        });
      }
      one.key(scopes) += '[';
      {
        JsonObject scoped(json);
        {
          JsonObject scope(scoped.key("scope"));
          scope.text("name", "httpretry");
          scope.text("version", HTTPRETRY_VERSION);
        }
        put(scoped.key(items));
      }
      json += ']';
    }
    json += ']';
  }
  return json;
}

void put_span(std::string& json, const Span& span) {
  JsonObject object(json);
  object.text("traceId", span.trace.hex());
  object.text("spanId", span_id_hex(span.id));
  if (span.parent != 0) object.text("parentSpanId", span_id_hex(span.parent));
  if (!span.state.empty()) object.text("traceState", span.state);
  object.number("flags", static_cast<int>(span.flags));
  object.text("name", span.name());
  object.number("kind", static_cast<int>(span.kind));
  object.text("startTimeUnixNano", nanoseconds(span.start));
  object.text("endTimeUnixNano", nanoseconds(span.end));
  put_attributes(object, span.attributes());
  if (!span.events.empty()) {
    put_list(object.key("events"), span.events, [&](const SpanEvent& event) {
      JsonObject each(json);
      each.text("timeUnixNano", nanoseconds(event.at));
      each.text("name", event.name);
      put_attributes(each, event.attributes);
    });
  }
  JsonObject status(object.key("status"));
  if (span.outcome() != Span::Status::Unset) {
    status.number("code", static_cast<int>(span.outcome()));
  }
}

std::string dotted(std::string_view name) {
  std::string text(name);
  for (auto& c : text) c = c == '_' ? '.' : c;
  return text;
}

// "http_client_request_duration_seconds" is "http.client.request.duration".
std::string metric_name(std::string_view name) {
  for (const std::string_view ending : {"_total", "_seconds"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return dotted(name);
}

// Those of the conventions have the names that they have in spans; ours begin with ours.
std::string label_name(std::string_view name) {
  if (name == "http_response_status_code") return "http.response.status_code";
  constexpr std::string_view kOfConventions[] = {"http_", "server_", "network_", "error_"};
  for (const auto prefix : kOfConventions) {
    if (name.starts_with(prefix)) return dotted(name);
  }
  return "httpretry." + std::string(name);
}

void put_point(std::string& json, const MetricsSnapshot& snapshot, const MetricFamily& family,
               const MetricSeries& series) {
  JsonObject point(json);
  put_attributes(point, [&](const auto& put) {
    for (const auto& [name, value] : series.labels) put(label_name(name), value);
  });
  if (family.kind != MetricFamily::Kind::Gauge) {
    point.text("startTimeUnixNano", nanoseconds(snapshot.since));
  }
  point.text("timeUnixNano", nanoseconds(snapshot.at));
  if (family.kind != MetricFamily::Kind::Histogram) return point.number("asDouble", series.value);
  point.text("count", std::to_string(series.count()));
  point.number("sum", series.value);
  put_list(point.key("bucketCounts"), series.counts,
           [&](std::uint64_t count) { json += '"' + std::to_string(count) + '"'; });
  put_list(point.key("explicitBounds"), family.bounds,
           [&](double bound) { json += number_text(bound); });
  std::vector<const Exemplar*> exemplars;
  for (const auto& each : series.exemplars) {
    if (each) exemplars.push_back(&*each);
  }
  if (exemplars.empty()) return;
  put_list(point.key("exemplars"), exemplars, [&](const Exemplar* each) {
    JsonObject exemplar(json);
    exemplar.text("timeUnixNano", nanoseconds(each->at));
    exemplar.number("asDouble", each->value);
    exemplar.text("traceId", each->trace_id);
    exemplar.text("spanId", each->span_id);
  });
}

void put_family(std::string& json, const MetricsSnapshot& snapshot, const MetricFamily& family) {
  JsonObject metric(json);
  metric.text("name", metric_name(family.name));
  metric.text("description", family.help);
  metric.text("unit", family.unit);
  const bool counter = family.kind == MetricFamily::Kind::Counter;
  const bool gauge = family.kind == MetricFamily::Kind::Gauge;
  JsonObject data(metric.key(counter ? "sum" : gauge ? "gauge" : "histogram"));
  put_list(data.key("dataPoints"), family.series,
           [&](const MetricSeries& series) { put_point(json, snapshot, family, series); });
  if (!gauge) data.number("aggregationTemporality", kCumulative);
  if (counter) data.boolean("isMonotonic", true);
}

}  // namespace

std::string otlp_json(const std::vector<SpanPtr>& spans, const OtlpOptions& options) {
  return envelope("resourceSpans", "scopeSpans", "spans", options, [&](std::string& json) {
    put_list(json, spans, [&](const SpanPtr& span) { put_span(json, *span); });
  });
}

std::string otlp_json(const MetricsSnapshot& snapshot, const OtlpOptions& options) {
  std::vector<const MetricFamily*> shown;
  for (const auto& family : snapshot.families) {
    if (!family.series.empty()) shown.push_back(&family);
  }
  return envelope("resourceMetrics", "scopeMetrics", "metrics", options, [&](std::string& json) {
    put_list(json, shown, [&](const MetricFamily* family) { put_family(json, snapshot, *family); });
  });
}

}  // namespace httpretry
