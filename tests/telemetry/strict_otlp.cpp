#include "strict_otlp.hpp"

#include <algorithm>
#include <set>

namespace httpretry {
namespace {

bool is_hex(const OtlpJson& value, std::size_t length) {
  if (!value.is_string()) return false;
  const auto text = value.get<std::string>();
  return text.size() == length &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos &&
         text.find_first_not_of('0') != std::string::npos;
}

// A 64-bit integer is a decimal text.
bool is_number_text(const OtlpJson& value) {
  if (!value.is_string()) return false;
  const auto text = value.get<std::string>();
  const auto digits = text.substr(text.starts_with('-') ? 1 : 0);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
}

std::uint64_t number_of(const OtlpJson& value) {
  return is_number_text(value) ? std::stoull(value.get<std::string>()) : 0;
}

class Checker {
 public:
  std::vector<std::string> wrong;

  void demand(bool good, const std::string& what) {
    if (!good) wrong.push_back(what);
  }

  // Whether all needed members are there, and no unknown ones.
  bool members(const OtlpJson& object, const std::string& where,
               const std::set<std::string>& needed, const std::set<std::string>& optional = {}) {
    const auto before = wrong.size();
    demand(object.is_object(), where + " is no object");
    if (wrong.size() != before) return false;
    for (const auto& name : needed) demand(object.contains(name), where + " lacks " + name);
    for (const auto& item : object.items()) {
      demand(needed.contains(item.key()) || optional.contains(item.key()),
             where + " has " + item.key());
    }
    return wrong.size() == before;
  }

  void attributes(const OtlpJson& list, const std::string& where) {
    demand(list.is_array(), where + ": attributes are no array");
    std::set<std::string> keys;
    for (const auto& each : list) {
      if (!members(each, where + " attribute", {"key", "value"})) continue;
      const auto key = each["key"].get<std::string>();
      demand(!key.empty() && keys.insert(key).second, where + ": key twice, or empty: " + key);
      value(each["value"], where + " " + key);
    }
  }

  void value(const OtlpJson& value, const std::string& where) {
    demand(value.is_object() && value.size() == 1, where + ": not one value");
    for (const auto& item : value.items()) {
      const auto& kind = item.key();
      const auto& it = item.value();
      const bool good =
          (kind == "stringValue" && it.is_string()) || (kind == "intValue" && is_number_text(it)) ||
          (kind == "doubleValue" && it.is_number()) || (kind == "boolValue" && it.is_boolean());
      demand(good, where + ": a bad " + kind);
    }
  }

  void time(const OtlpJson& holder, const std::string& name) {
    demand(is_number_text(holder[name]) && number_of(holder[name]) > 1'000'000'000'000'000'000,
           name + " is no time in nanoseconds, as text");
  }

  void span(const OtlpJson& span) {
    if (!members(span, "span",
                 {"traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
                  "attributes", "status"},
                 {"parentSpanId", "traceState", "flags", "events"})) {
      return;
    }
    demand(is_hex(span["traceId"], 32), "traceId is not 32 hex digits");
    demand(is_hex(span["spanId"], 16), "spanId is not 16 hex digits");
    if (span.contains("parentSpanId")) {
      demand(is_hex(span["parentSpanId"], 16), "parentSpanId is not 16 hex digits");
    }
    demand(span["kind"] == 1 || span["kind"] == 3, "kind is neither 1 nor 3");
    demand(span["name"].is_string() && span["name"] != "", "a span has no name");
    time(span, "startTimeUnixNano");
    time(span, "endTimeUnixNano");
    demand(number_of(span["startTimeUnixNano"]) <= number_of(span["endTimeUnixNano"]),
           "a span ends before it begins");
    attributes(span["attributes"], "span");
    members(span["status"], "status", {}, {"code"});
    if (span["status"].contains("code")) {
      demand(span["status"]["code"] == 1 || span["status"]["code"] == 2, "status is no 1 and no 2");
    }
    if (!span.contains("events")) return;
    for (const auto& event : span["events"]) {
      if (!members(event, "event", {"timeUnixNano", "name", "attributes"})) continue;
      time(event, "timeUnixNano");
      attributes(event["attributes"], "event");
    }
  }

  void metric(const OtlpJson& metric) {
    const bool sum = metric.contains("sum");
    const bool histogram = metric.contains("histogram");
    const std::string kind = sum ? "sum" : histogram ? "histogram" : "gauge";
    if (!members(metric, "metric", {"name", "description", "unit", kind})) return;
    demand(metric["name"] != "", "a metric has no name");
    const auto& data = metric[kind];
    std::set<std::string> needed{"dataPoints"};
    if (sum || histogram) needed.insert("aggregationTemporality");
    if (sum) needed.insert("isMonotonic");
    if (!members(data, kind, needed)) return;
    if (sum || histogram) demand(data["aggregationTemporality"] == 2, "it is not cumulative");
    if (sum) demand(data["isMonotonic"] == true, "a sum may fall");
    demand(!data["dataPoints"].empty(), "there are no points");
    for (const auto& point : data["dataPoints"]) {
      histogram ? histogram_point(point) : number_point(point, sum);
    }
  }

  void number_point(const OtlpJson& point, bool sum) {
    std::set<std::string> needed{"attributes", "timeUnixNano", "asDouble"};
    if (sum) needed.insert("startTimeUnixNano");
    if (!members(point, "point", needed)) return;
    time(point, "timeUnixNano");
    if (sum) time(point, "startTimeUnixNano");
    demand(point["asDouble"].is_number(), "asDouble is no number");
    attributes(point["attributes"], "point");
  }

  void histogram_point(const OtlpJson& point) {
    if (!members(point, "histogram point",
                 {"attributes", "timeUnixNano", "startTimeUnixNano", "count", "sum", "bucketCounts",
                  "explicitBounds"},
                 {"exemplars"})) {
      return;
    }
    time(point, "timeUnixNano");
    time(point, "startTimeUnixNano");
    attributes(point["attributes"], "point");
    demand(point["sum"].is_number(), "sum is no number");
    const auto& counts = point["bucketCounts"];
    const auto& bounds = point["explicitBounds"];
    demand(counts.size() == bounds.size() + 1, "there is not one bucket more than bounds");
    demand(std::ranges::is_sorted(bounds.get<std::vector<double>>()), "the bounds do not rise");
    std::uint64_t total = 0;
    for (const auto& count : counts) {
      demand(is_number_text(count), "a count is no text");
      total += number_of(count);
    }
    demand(is_number_text(point["count"]) && number_of(point["count"]) == total,
           "count is not the sum of the buckets, as text");
    if (!point.contains("exemplars")) return;
    for (const auto& exemplar : point["exemplars"]) {
      if (!members(exemplar, "exemplar", {"timeUnixNano", "asDouble", "traceId", "spanId"}))
        continue;
      time(exemplar, "timeUnixNano");
      demand(is_hex(exemplar["traceId"], 32) && is_hex(exemplar["spanId"], 16), "a bad exemplar");
    }
  }

  // Calls `look` for each item of all scopes.
  template <class Look>
  void envelope(const OtlpJson& body, const std::string& resources, const std::string& scopes,
                const std::string& items, const Look& look) {
    if (!members(body, "body", {resources})) return;
    for (const auto& resource : body[resources]) {
      if (!members(resource, resources, {"resource", scopes})) continue;
      attributes(resource["resource"]["attributes"], "resource");
      demand(attribute_of(resource["resource"], "service.name") != "-", "service.name is missing");
      for (const auto& scope : resource[scopes]) {
        if (!members(scope, scopes, {"scope", items})) continue;
        demand(scope["scope"]["name"] == "httpretry", "the scope has another name");
        demand(!scope[items].empty(), "nothing was sent");
        for (const auto& item : scope[items]) look(item);
      }
    }
  }
};

std::vector<OtlpJson> all_of(const OtlpJson& body, const char* resources, const char* scopes,
                             const char* items) {
  std::vector<OtlpJson> all;
  for (const auto& resource : body.at(resources)) {
    for (const auto& scope : resource.at(scopes)) {
      for (const auto& item : scope.at(items)) all.push_back(item);
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> wrong_in_spans(const OtlpJson& body) {
  Checker checker;
  checker.envelope(body, "resourceSpans", "scopeSpans", "spans",
                   [&](const OtlpJson& span) { checker.span(span); });
  return checker.wrong;
}

std::vector<std::string> wrong_in_metrics(const OtlpJson& body) {
  Checker checker;
  checker.envelope(body, "resourceMetrics", "scopeMetrics", "metrics",
                   [&](const OtlpJson& metric) { checker.metric(metric); });
  return checker.wrong;
}

std::vector<std::string> wrong_in(const SeenRequest& request) {
  if (request.method != "POST") return {"the method is " + request.method};
  if (request.headers["Content-Type"] != "application/json") return {"the type is not JSON"};
  if (!request.body_complete) return {"the body broke off"};
  const auto body = OtlpJson::parse(request.body, nullptr, false);
  if (body.is_discarded()) return {"the body is no JSON"};
  if (request.path.ends_with("/v1/traces")) return wrong_in_spans(body);
  if (request.path.ends_with("/v1/metrics")) return wrong_in_metrics(body);
  return {"nobody asked for " + request.path};
}

std::vector<OtlpJson> spans_of(const OtlpJson& body) {
  return all_of(body, "resourceSpans", "scopeSpans", "spans");
}

std::vector<OtlpJson> metrics_of(const OtlpJson& body) {
  return all_of(body, "resourceMetrics", "scopeMetrics", "metrics");
}

std::string attribute_of(const OtlpJson& holder, std::string_view key) {
  for (const auto& each : holder.at("attributes")) {
    if (each.at("key") != key) continue;
    const auto value = each.at("value").items().begin().value();
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  return "-";
}

}  // namespace httpretry
