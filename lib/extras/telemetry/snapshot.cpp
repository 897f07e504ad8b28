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

template <const auto& kBounds>
std::vector<double> bounds_in_seconds() {
  std::vector<double> bounds;
  for (const auto bound : kBounds) bounds.push_back(static_cast<double>(bound) / 1e9);
  return bounds;
}

void put(Labels& labels, std::string name, std::string_view value) {
  if (!value.empty()) labels.emplace_back(std::move(name), value);
}

MetricFamily make_family(std::string_view name, Kind kind, std::string_view unit,
                         std::string_view help) {
  MetricFamily made;
  made.name = name;
  made.kind = kind;
  made.unit = unit;
  made.help = help;
  return made;
}

MetricSeries value_series(Labels labels, double value) {
  MetricSeries series;
  series.labels = std::move(labels);
  series.value = value;
  return series;
}

// `scale` converts the unit of the sum, from nanoseconds to seconds for example.
MetricSeries histogram_series(Labels labels, const Total& total, double scale) {
  auto series = value_series(std::move(labels), static_cast<double>(total.sum) / scale);
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

  MetricsSnapshot take() {
    MetricsSnapshot taken;
    taken.since = state_.since;
    taken.at = std::chrono::system_clock::now();
    for (auto make :
         {&Snapshot::request_duration, &Snapshot::sends, &Snapshot::in_flight,
          &Snapshot::call_duration, &Snapshot::call_attempts, &Snapshot::retries,
          &Snapshot::refused_retries, &Snapshot::hedges, &Snapshot::wait, &Snapshot::shed,
          &Snapshot::budget, &Snapshot::queue, &Snapshot::circuit_state, &Snapshot::circuit_changes,
          &Snapshot::paused, &Snapshot::limit, &Snapshot::dropped}) {
      taken.families.push_back((this->*make)());
    }
    return taken;
  }

 private:
  [[nodiscard]] std::string host_name(std::uint32_t number) const {
    return number < hosts_.size() ? hosts_[number] : "_other";
  }

  [[nodiscard]] Labels endpoint_labels(std::uint64_t key, bool with_policy = true) const {
    const auto number = static_cast<std::uint32_t>(key);
    std::string_view both = "_other\n_other";
    if (number < endpoints_.size()) both = endpoints_[number];
    const auto line = both.find('\n');
    Labels labels;
    put(labels, "endpoint", both.substr(0, line));
    if (with_policy) put(labels, "policy", both.substr(line + 1));
    return labels;
  }

  [[nodiscard]] Labels send_labels(const SendKey& key) const {
    Labels labels;
    put(labels, "http_request_method", kMethods[key.method]);
    // The name of a host is its origin, "https://example.com:8443". It omits the default port.
    if (key.host < hosts_.size()) {
      const auto url = Url::parse(hosts_[key.host] + "/");
      put(labels, "server_address", url ? address_of(*url) : hosts_[key.host]);
      if (url) put(labels, "server_port", std::to_string(url->port()));
    } else {
      put(labels, "server_address", "_other");
    }
    const auto status =
        key.status == kOtherStatus ? "_other" : std::to_string(static_cast<int>(key.status));
    if (key.status != 0) put(labels, "http_response_status_code", status);
    if (key.error != 0) {
      put(labels, "error_type", to_string(static_cast<Errc>(key.error - 1)));
    } else if (key.status >= 400) {
      put(labels, "error_type", status);
    }
    put(labels, "network_protocol_version", kVersions[key.version]);
    return labels;
  }

  static std::vector<std::optional<Exemplar>> exemplars_of(const Exemplars& exemplars) {
    std::vector<std::optional<Exemplar>> all(exemplars.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& from = exemplars[i];
      const TraceId trace{from.trace_high, from.trace_low};
      if (!trace.valid()) continue;
      auto& to = all[i].emplace();
      to.trace_id = trace.hex();
      to.span_id = span_id_hex(from.span);
      to.value = static_cast<double>(from.nanoseconds) / 1e9;
      to.at = from.at;
    }
    return all;
  }

  MetricFamily request_duration() {
    auto made = make_family("http_client_request_duration_seconds", Kind::Histogram, "s",
                            "Duration of HTTP client requests, one for each send.");
    made.bounds = bounds_in_seconds<kDurationBounds>();
    for (const auto& [key, total] : totals_.sends) {
      auto series = histogram_series(send_labels(SendKey::unpack(key)), total.duration, 1e9);
      series.exemplars = exemplars_of(total.exemplars);
      made.series.push_back(std::move(series));
    }
    return made;
  }

  MetricFamily sends() {
    auto made = make_family("httpretry_sends_total", Kind::Counter, "{send}",
                            "Requests on the wire, with those of authentication.");
    made.series.push_back(value_series({}, static_cast<double>(totals_.wire_sends)));
    return made;
  }

  MetricFamily in_flight() {
    auto made = make_family("httpretry_in_flight", Kind::Gauge, "{request}",
                            "Requests that have begun and not ended, by server.");
    for (const auto& [number, count] : totals_.in_flight) {
      made.series.push_back(
          value_series({{"scope", host_name(number)}}, static_cast<double>(count)));
    }
    return made;
  }

  [[nodiscard]] Labels call_labels(std::uint64_t key) const {
    auto labels = endpoint_labels(key);
    put(labels, "stop_reason", to_string(static_cast<Reason>(key >> 32U & 0xFFU)));
    return labels;
  }

  MetricFamily call_duration() {
    auto made = make_family("httpretry_call_duration_seconds", Kind::Histogram, "s",
                            "Duration of calls, with all their attempts and waits.");
    made.bounds = bounds_in_seconds<kDurationBounds>();
    for (const auto& [key, total] : totals_.calls) {
      made.series.push_back(histogram_series(call_labels(key), total.duration, 1e9));
    }
    return made;
  }

  MetricFamily call_attempts() {
    auto made =
        make_family("httpretry_call_attempts", Kind::Histogram, "{attempt}", "Attempts of a call.");
    for (const auto bound : kAttemptBounds) made.bounds.push_back(static_cast<double>(bound));
    for (const auto& [key, total] : totals_.calls) {
      made.series.push_back(histogram_series(call_labels(key), total.attempts, 1));
    }
    return made;
  }

  MetricFamily retries() {
    auto made = make_family("httpretry_retries_total", Kind::Counter, "{retry}",
                            "Retries that were decided on, by the result of the previous attempt.");
    for (const auto& [key, count] : totals_.retries) {
      auto labels = endpoint_labels(key, false);
      put(labels, "class", to_string(static_cast<Class>(key >> 32U & 0xFFU)));
      put(labels, "rule_kind", kRuleKinds[key >> 40U & 0xFFU]);
      made.series.push_back(value_series(std::move(labels), static_cast<double>(count)));
    }
    return made;
  }

  MetricFamily refused_retries() {
    auto made =
        make_family("httpretry_retries_refused_total", Kind::Counter, "{call}",
                    "Calls that ended because a limit or the danger of harm forbade a retry.");
    for (const auto& [key, count] : totals_.refused_retries) {
      auto labels = endpoint_labels(key, false);
      put(labels, "reason", to_string(static_cast<Reason>(key >> 32U & 0xFFU)));
      made.series.push_back(value_series(std::move(labels), static_cast<double>(count)));
    }
    return made;
  }

  MetricFamily hedges() {
    auto made =
        make_family("httpretry_hedges_total", Kind::Counter, "{hedge}",
                    "Second sends of a slow request, and calls in which the last was refused.");
    for (const auto& [key, count] : totals_.hedges) {
      auto labels = endpoint_labels(key, false);
      const auto result = key >> 32U & 0xFFU;
      std::string word = result == kHedgeWon ? "won" : "lost";
      if (result >= kFirstRefused) {
        word = "refused_";
        word += to_string(static_cast<HedgeRefused>(result - kFirstRefused));
      }
      put(labels, "result", word);
      made.series.push_back(value_series(std::move(labels), static_cast<double>(count)));
    }
    return made;
  }

  MetricFamily wait() {
    auto made = make_family("httpretry_retry_wait_seconds_total", Kind::Counter, "s",
                            "Waits before retries.");
    made.series.push_back(value_series({}, static_cast<double>(totals_.wait) / 1e9));
    return made;
  }

  MetricFamily shed() {
    auto made = make_family("httpretry_refused_total", Kind::Counter, "{send}",
                            "Sends that our own guards refused: nothing was sent.");
    for (std::size_t i = 0; i < kShedReasons.size(); ++i) {
      if (totals_.shed[i] == 0) continue;
      made.series.push_back(value_series({{"reason", std::string(to_string(kShedReasons[i]))}},
                                         static_cast<double>(totals_.shed[i])));
    }
    return made;
  }

  MetricFamily budget() {
    auto made = make_family("httpretry_budget_left", Kind::Gauge, "{token}",
                            "What was left in a retry budget when it was last used.");
    const auto put_all = [&](const std::vector<Metrics::State::Gauge>& gauges, const auto& name) {
      for (std::size_t i = 0; i < gauges.size(); ++i) {
        const auto left = gauges[i].load(std::memory_order_relaxed);
        if (left == Metrics::State::kNone) continue;
        made.series.push_back(value_series({{"scope", name(static_cast<std::uint32_t>(i))}},
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
    return made;
  }

  MetricFamily queue() {
    auto made = make_family("httpretry_queue_seconds", Kind::Histogram, "s",
                            "Waits of sends before they began, by what held them back.");
    made.bounds = bounds_in_seconds<kDurationBounds>();
    for (std::size_t i = 0; i < totals_.queued.size(); ++i) {
      const auto& total = totals_.queued[i];
      if (std::ranges::all_of(total.counts, [](auto count) { return count == 0; })) continue;
      const std::string by(to_string(static_cast<QueuedBy>(i)));
      made.series.push_back(histogram_series({{"by", by}}, total, 1e9));
    }
    return made;
  }

  // Adds a series for each scope for which `value(scope)` returns a number.
  template <class Value>
  MetricFamily by_scope(MetricFamily made, const Value& value) const {
    for (const auto& [key, scope] : scopes_) {
      const std::optional<double> found = value(scope);
      if (found) made.series.push_back(value_series({{"scope", key}}, *found));
    }
    return made;
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
    auto made = make_family("httpretry_circuit_changes_total", Kind::Counter, "{change}",
                            "Changes of circuits, by the state that they changed to.");
    for (const auto& [key, scope] : scopes_) {
      for (std::size_t i = 0; i < scope.changes.size(); ++i) {
        if (scope.changes[i] == 0) continue;
        const std::string to(to_string(static_cast<Circuit>(i)));
        made.series.push_back(
            value_series({{"scope", key}, {"to", to}}, static_cast<double>(scope.changes[i])));
      }
    }
    return made;
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
                                "Limit of sends at once, where it has changed."),
                    value);
  }

  MetricFamily dropped() {
    auto made = make_family("httpretry_telemetry_dropped_total", Kind::Counter, "{item}",
                            "Spans and metrics that were not exported.");
    if (!state_.options.exporter) return made;
    for (const auto& drop : state_.options.exporter->dropped()) {
      made.series.push_back(
          value_series({{"signal", std::string(drop.signal)}, {"why", std::string(drop.why)}},
                       static_cast<double>(drop.count)));
    }
    return made;
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

double MetricsSnapshot::sum(std::string_view name, const Labels& labels) const {
  const auto* found = find(name);
  if (found == nullptr) return 0;
  double sum = 0;
  for (const auto& series : found->series) {
    const bool has_all = std::ranges::all_of(
        labels, [&](const auto& label) { return series.label(label.first) == label.second; });
    if (!has_all) continue;
    sum += found->kind == MetricFamily::Kind::Histogram ? static_cast<double>(series.count())
                                                        : series.value;
  }
  return sum;
}

}  // namespace httpretry
