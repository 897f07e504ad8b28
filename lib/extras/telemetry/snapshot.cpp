// Turns the counts into the metric families of a snapshot, with their labels.
#include "totals.hpp"
#include "words.hpp"

#include <httpretry/telemetry/otlp.hpp>

#include <algorithm>
#include <numeric>

namespace httpretry {

using namespace telemetry;

namespace {

using Kind = MetricFamily::Kind;
using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr double kNsPerSecond = 1e9;

template <const auto& kBounds>
std::vector<double> bounds_in_seconds() {
  std::vector<double> bounds;
  for (const auto bound : kBounds) bounds.push_back(static_cast<double>(bound) / kNsPerSecond);
  return bounds;
}

void put_if_any(Labels& labels, std::string name, std::string_view value) {
  if (!value.empty()) labels.emplace_back(std::move(name), value);
}

MetricFamily make_family(std::string_view name, Kind kind, std::string_view unit,
                         std::string_view help) {
  MetricFamily family;
  family.name = name;
  family.kind = kind;
  family.unit = unit;
  family.help = help;
  return family;
}

MetricSeries value_series(Labels labels, double value) {
  MetricSeries series;
  series.labels = std::move(labels);
  series.value = value;
  return series;
}

// Returns a series with the sum and the counts of a histogram. `units_per_shown` converts the sum
// to the unit of the family.
MetricSeries histogram_series(Labels labels, const Total& total, double units_per_shown) {
  auto series = value_series(std::move(labels), static_cast<double>(total.sum) / units_per_shown);
  series.counts = total.counts;
  return series;
}

class Snapshot {
 public:
  explicit Snapshot(const Metrics::State& state)
      : state_(state),
        totals_(state),
        scopes_(state.guards.scopes()),
        hosts_(state.hosts.texts()),
        endpoints_(state.endpoints.texts()) {}

  // Returns all families, even those without series.
  MetricsSnapshot take() {
    MetricsSnapshot snapshot;
    snapshot.since = state_.since;
    snapshot.at = std::chrono::system_clock::now();
    for (auto make :
         {&Snapshot::request_duration, &Snapshot::sends, &Snapshot::in_flight,
          &Snapshot::call_duration, &Snapshot::call_attempts, &Snapshot::retries,
          &Snapshot::refused_retries, &Snapshot::fallbacks, &Snapshot::hedges, &Snapshot::wait,
          &Snapshot::shed, &Snapshot::budget, &Snapshot::queue, &Snapshot::circuit_state,
          &Snapshot::circuit_changes, &Snapshot::paused, &Snapshot::limit, &Snapshot::dropped}) {
      snapshot.families.push_back((this->*make)());
    }
    return snapshot;
  }

 private:
  [[nodiscard]] std::string host_name(std::uint32_t number) const {
    return number < hosts_.size() ? hosts_[number] : "_other";
  }

  enum class PolicyLabel : std::uint8_t { With, Without };

  // Returns the labels of the endpoint whose number is in the lower 32 bits of the key.
  [[nodiscard]] Labels endpoint_labels(std::uint64_t key,
                                       PolicyLabel policy = PolicyLabel::With) const {
    const auto number = static_cast<std::uint32_t>(key);
    std::string_view names = "_other\xFF_other";  // kNameSeparator is \xFF
    if (number < endpoints_.size()) names = endpoints_[number];
    const auto separator = names.find(kNameSeparator);
    Labels labels;
    put_if_any(labels, "endpoint", names.substr(0, separator));
    if (policy == PolicyLabel::With) put_if_any(labels, "policy", names.substr(separator + 1));
    return labels;
  }

  // Returns the labels of a metric series that counts sends, with the names that OpenTelemetry's
  // conventions define. `key` has the indexes of the method, the host and the HTTP version, a
  // status (0: no response) and an error (0: none). The label "error_type" is the error, or a
  // status of at least 400. `_other` replaces a host if there are too many hosts, and both the host
  // and the status if there are too many series.
  [[nodiscard]] Labels send_labels(const SendKey& key) const {
    Labels labels;
    put_if_any(labels, "http_request_method", kMethods[key.method]);
    // The name of a host is its origin, such as "https://example.com", which omits a default port.
    // Parsing it as a URL yields the port in any case. `_other` is no URL, and has no port.
    const auto host = host_name(key.host);
    const auto url = Url::parse(host + "/");
    put_if_any(labels, "server_address", url ? address_of(*url) : host);
    if (url) put_if_any(labels, "server_port", std::to_string(url->port()));
    const auto status =
        key.status == kOtherStatus ? "_other" : std::to_string(static_cast<int>(key.status));
    if (key.status != 0) put_if_any(labels, "http_response_status_code", status);
    if (key.error != 0) {
      put_if_any(labels, "error_type", to_string(key.error_code()));
    } else if (key.status >= 400) {  // not kOtherStatus, which may stand for a success
      put_if_any(labels, "error_type", status);
    }
    put_if_any(labels, "network_protocol_version", kVersions[key.version]);
    return labels;
  }

  // Returns the exemplar of each bucket, if it has one.
  static std::vector<std::optional<Exemplar>> exemplars_of(const Exemplars& stored) {
    std::vector<std::optional<Exemplar>> exemplars(stored.size());
    for (std::size_t i = 0; i < exemplars.size(); ++i) {
      const auto& source = stored[i];
      const TraceId trace{source.trace_high, source.trace_low};
      if (!trace.valid()) continue;
      auto& exemplar = exemplars[i].emplace();
      exemplar.trace_id = trace.hex();
      exemplar.span_id = span_id_hex(source.span);
      exemplar.value = static_cast<double>(source.nanoseconds) / kNsPerSecond;
      exemplar.at = source.at;
    }
    return exemplars;
  }

  MetricFamily request_duration() {
    auto family = make_family("http_client_request_duration_seconds", Kind::Histogram, "s",
                              "Duration of HTTP client requests, one for each send.");
    family.bounds = bounds_in_seconds<kDurationBounds>();
    for (const auto& [key, total] : totals_.sends) {
      auto series =
          histogram_series(send_labels(SendKey::unpack(key)), total.duration, kNsPerSecond);
      series.exemplars = exemplars_of(total.exemplars);
      family.series.push_back(std::move(series));
    }
    return family;
  }

  MetricFamily sends() {
    auto family = make_family("httpretry_sends_total", Kind::Counter, "{send}",
                              "Requests on the wire, including those for authentication.");
    family.series.push_back(value_series({}, static_cast<double>(totals_.wire_sends)));
    return family;
  }

  MetricFamily in_flight() {
    auto family = make_family("httpretry_in_flight", Kind::Gauge, "{request}",
                              "Requests that have begun and not ended, by server.");
    for (const auto& [number, count] : totals_.in_flight) {
      family.series.push_back(
          value_series({{"scope", host_name(number)}}, static_cast<double>(count)));
    }
    return family;
  }

  [[nodiscard]] Labels call_labels(std::uint64_t key) const {
    auto labels = endpoint_labels(key);
    put_if_any(labels, "stop_reason", to_string(static_cast<Reason>(first_label(key))));
    return labels;
  }

  MetricFamily call_duration() {
    auto family = make_family("httpretry_call_duration_seconds", Kind::Histogram, "s",
                              "Duration of calls, including all attempts and waits.");
    family.bounds = bounds_in_seconds<kDurationBounds>();
    for (const auto& [key, total] : totals_.calls) {
      family.series.push_back(histogram_series(call_labels(key), total.duration, kNsPerSecond));
    }
    return family;
  }

  MetricFamily call_attempts() {
    auto family =
        make_family("httpretry_call_attempts", Kind::Histogram, "{attempt}", "Attempts of a call.");
    for (const auto bound : kAttemptBounds) family.bounds.push_back(static_cast<double>(bound));
    for (const auto& [key, total] : totals_.calls) {
      family.series.push_back(
          histogram_series(call_labels(key), total.attempts, /*units_per_shown=*/1));
    }
    return family;
  }

  MetricFamily retries() {
    auto family =
        make_family("httpretry_retries_total", Kind::Counter, "{retry}",
                    "Retries that were decided on, by the result of the previous attempt.");
    for (const auto& [key, count] : totals_.retries) {
      auto labels = endpoint_labels(key, PolicyLabel::Without);
      put_if_any(labels, "class", to_string(static_cast<Class>(first_label(key))));
      put_if_any(labels, "rule_kind", kRuleKinds[second_label(key)]);
      family.series.push_back(value_series(std::move(labels), static_cast<double>(count)));
    }
    return family;
  }

  MetricFamily refused_retries() {
    auto family =
        make_family("httpretry_retries_refused_total", Kind::Counter, "{call}",
                    "Calls that ended because a limit or the danger of harm forbade a retry.");
    for (const auto& [key, count] : totals_.refused_retries) {
      auto labels = endpoint_labels(key, PolicyLabel::Without);
      put_if_any(labels, "reason", to_string(static_cast<Reason>(first_label(key))));
      family.series.push_back(value_series(std::move(labels), static_cast<double>(count)));
    }
    return family;
  }

  MetricFamily fallbacks() {
    auto family = make_family("httpretry_fallbacks_total", Kind::Counter, "{call}",
                              "Calls that failed and got the response of a fallback.");
    for (const auto& [key, count] : totals_.fallbacks) {
      family.series.push_back(
          value_series(endpoint_labels(key, PolicyLabel::Without), static_cast<double>(count)));
    }
    return family;
  }

  // Returns the metric that counts hedges, which are second sends of a slow request, and calls
  // whose last hedge was refused. The key of a count packs the endpoint and one label, the result
  // of the hedge. As text, it is "won" if its response was used, "lost", or "refused_REASON".
  MetricFamily hedges() {
    auto family =
        make_family("httpretry_hedges_total", Kind::Counter, "{hedge}",
                    "Second sends of a slow request, and calls in which the last was refused.");
    for (const auto& [key, count] : totals_.hedges) {
      auto labels = endpoint_labels(key, PolicyLabel::Without);
      const auto packed_result = first_label(key);
      std::string result = packed_result == kHedgeWon ? "won" : "lost";
      if (packed_result >= kFirstRefused) {  // the result is kFirstRefused plus the reason
        result = "refused_";
        result += to_string(static_cast<HedgeRefused>(packed_result - kFirstRefused));
      }
      put_if_any(labels, "result", result);
      family.series.push_back(value_series(std::move(labels), static_cast<double>(count)));
    }
    return family;
  }

  MetricFamily wait() {
    auto family = make_family("httpretry_retry_wait_seconds_total", Kind::Counter, "s",
                              "Waits before retries.");
    family.series.push_back(value_series({}, static_cast<double>(totals_.wait) / kNsPerSecond));
    return family;
  }

  MetricFamily shed() {
    auto family = make_family("httpretry_refused_total", Kind::Counter, "{send}",
                              "Sends that our own guards refused: nothing was sent.");
    for (std::size_t i = 0; i < kShedReasons.size(); ++i) {
      if (totals_.shed[i] == 0) continue;
      family.series.push_back(value_series({{"reason", std::string(to_string(kShedReasons[i]))}},
                                           static_cast<double>(totals_.shed[i])));
    }
    return family;
  }

  // Returns the metric with the tokens left in each retry budget. Its label "scope" says which
  // requests share the budget: an origin, or "endpoint NAME policy NAME". The position of a gauge
  // is the number of its host or endpoint. A budget that was not used yet is left out.
  MetricFamily budget() {
    auto family = make_family("httpretry_budget_left", Kind::Gauge, "{token}",
                              "What was left in a retry budget when it was last used.");
    const auto put_all = [&](const std::vector<Metrics::State::Gauge>& gauges, const auto& name) {
      for (std::size_t i = 0; i < gauges.size(); ++i) {
        const auto left = gauges[i].load(std::memory_order_relaxed);
        if (left == Metrics::State::kNone) continue;
        family.series.push_back(value_series({{"scope", name(static_cast<std::uint32_t>(i))}},
                                             static_cast<double>(left)));
      }
    };
    put_all(state_.budget_of_host, [&](std::uint32_t number) { return host_name(number); });
    put_all(state_.budget_of_endpoint, [&](std::uint32_t number) {
      std::string scope;
      for (const auto& [name, value] : endpoint_labels(number)) {
        scope.append(scope.empty() ? "" : " ").append(name).append(" ").append(value);
      }
      return scope;
    });
    return family;
  }

  MetricFamily queue() {
    auto family = make_family("httpretry_queue_seconds", Kind::Histogram, "s",
                              "Waits of sends before they began, by what held them back.");
    family.bounds = bounds_in_seconds<kDurationBounds>();
    for (std::size_t i = 0; i < totals_.queued.size(); ++i) {
      const auto& total = totals_.queued[i];
      if (std::ranges::all_of(total.counts, [](auto count) { return count == 0; })) continue;
      const std::string by(to_string(static_cast<QueuedBy>(i)));
      family.series.push_back(histogram_series({{"by", by}}, total, kNsPerSecond));
    }
    return family;
  }

  // Adds a series for each scope for which `value_of(scope)` returns a number.
  template <class ValueOf>
  MetricFamily by_scope(MetricFamily family, const ValueOf& value_of) const {
    for (const auto& [key, scope] : scopes_) {
      const std::optional<double> value = value_of(scope);
      if (value) family.series.push_back(value_series({{"scope", key}}, *value));
    }
    return family;
  }

  MetricFamily circuit_state() {
    const auto value = [](const ScopeNumbers& scope) -> std::optional<double> {
      if (!scope.circuit) return std::nullopt;
      return *scope.circuit == Circuit::Closed ? 0 : *scope.circuit == Circuit::HalfOpen ? 1 : 2;
    };
    return by_scope(
        make_family("httpretry_circuit_state", Kind::Gauge, "",
                    "State of a circuit that has changed: 0 closed, 1 half open, 2 open."),
        value);
  }

  MetricFamily circuit_changes() {
    auto family = make_family("httpretry_circuit_changes_total", Kind::Counter, "{change}",
                              "Changes of circuits, by the state that they changed to.");
    for (const auto& [key, scope] : scopes_) {
      for (std::size_t i = 0; i < scope.changes.size(); ++i) {
        if (scope.changes[i] == 0) continue;
        const std::string to(to_string(static_cast<Circuit>(i)));
        family.series.push_back(
            value_series({{"scope", key}, {"to", to}}, static_cast<double>(scope.changes[i])));
      }
    }
    return family;
  }

  MetricFamily paused() {
    const auto now = std::chrono::system_clock::now();
    const auto value = [&](const ScopeNumbers& scope) -> std::optional<double> {
      if (!scope.paused_until) return std::nullopt;
      return *scope.paused_until > now ? 1 : 0;
    };
    return by_scope(
        make_family("httpretry_paused", Kind::Gauge, "",
                    "1 while a pause that the server asked for holds sends back, 0 afterwards."),
        value);
  }

  MetricFamily limit() {
    const auto value = [](const ScopeNumbers& scope) -> std::optional<double> {
      if (!scope.limit) return std::nullopt;
      return *scope.limit;
    };
    return by_scope(make_family("httpretry_limit", Kind::Gauge, "{send}",
                                "Limit on concurrent sends, if it has changed."),
                    value);
  }

  MetricFamily dropped() {
    auto family = make_family("httpretry_telemetry_dropped_total", Kind::Counter, "{item}",
                              "Spans and metrics that were not exported.");
    if (!state_.options.exporter) return family;
    for (const auto& drop : state_.options.exporter->dropped()) {
      family.series.push_back(
          value_series({{"signal", std::string(drop.signal)}, {"why", std::string(drop.why)}},
                       static_cast<double>(drop.count)));
    }
    return family;
  }

  const Metrics::State& state_;
  Totals totals_;
  GuardNumbers::Scopes scopes_;
  std::vector<std::string> hosts_;
  std::vector<std::string> endpoints_;
};

}  // namespace

MetricsSnapshot Metrics::snapshot() const { return Snapshot(*state_).take(); }

std::uint64_t MetricSeries::count() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::string_view MetricSeries::label(std::string_view name) const {
  for (const auto& [key, text] : labels) {
    if (key == name) return text;
  }
  return {};
}

const MetricFamily* MetricsSnapshot::find(std::string_view name) const {
  const auto found = std::ranges::find(families, name, &MetricFamily::name);
  return found == families.end() ? nullptr : &*found;
}

// Returns the sum of the values of all series of a family that have these labels, or of their
// counts if the family is a histogram. Returns 0 if there is no such family.
double MetricsSnapshot::sum(std::string_view name, const Labels& labels) const {
  const auto* family = find(name);
  if (family == nullptr) return 0;
  double sum = 0;
  for (const auto& series : family->series) {
    const bool has_all = std::ranges::all_of(
        labels, [&](const auto& label) { return series.label(label.first) == label.second; });
    if (!has_all) continue;
    sum += family->kind == MetricFamily::Kind::Histogram ? static_cast<double>(series.count())
                                                         : series.value;
  }
  return sum;
}

}  // namespace httpretry
