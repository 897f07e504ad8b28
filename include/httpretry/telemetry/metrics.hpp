// metrics(): counters, histograms and gauges of all calls of the clients that have it as an
// observer, as Prometheus and OpenTelemetry name them.
//
//   const auto numbers = metrics();
//   ClientOptions options;
//   options.observers = {numbers};
//   ...
//   response.set_body(numbers->prometheus());  // where the service answers to GET /metrics
//
// Each thread that drives calls counts for itself, without a lock; reading adds it all up. All
// numbers only grow, gauges aside. The names are listed in lib/extras/telemetry/README.md.
#pragma once

#include <httpretry/chain/observer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

class Otlp;

// One line of a histogram's exemplars: a send that fell into the bucket.
struct HTTPRETRY_API Exemplar {
  Exemplar() = default;

  std::string trace_id;
  std::string span_id;
  double value = 0;
  WallTime at{};
};

struct HTTPRETRY_API MetricSeries {
  MetricSeries() = default;

  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;  // of counters and gauges; of a histogram the sum
  // Of a histogram: how many values were in each bucket (not cumulative), the last for what is
  // above all bounds.
  std::vector<std::uint64_t> counts;
  std::vector<std::optional<Exemplar>> exemplars;  // one for each bucket

  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] std::string_view label(std::string_view name) const;  // empty if there is none
};

struct HTTPRETRY_API MetricFamily {
  enum class Kind : std::uint8_t { Counter, Gauge, Histogram };
  MetricFamily() = default;

  std::string name;  // Prometheus's: "httpretry_retries_total"
  std::string help;
  Kind kind = Kind::Counter;
  std::string unit;            // "s" and the like, as OpenTelemetry writes it; may be empty
  std::vector<double> bounds;  // of histograms
  std::vector<MetricSeries> series;
};

struct HTTPRETRY_API MetricsSnapshot {
  MetricsSnapshot() = default;

  WallTime since{};
  WallTime at{};
  std::vector<MetricFamily> families;

  [[nodiscard]] const MetricFamily* find(std::string_view name) const;
  // The sum over the series of that family that have all of these labels: of values, for a
  // histogram of counts. 0 where there are none.
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  [[nodiscard]] double sum(std::string_view name, const Labels& labels = {}) const;
};

struct HTTPRETRY_API MetricsOptions {
  MetricsOptions() = default;

  // Servers (host and port) with series of their own; the rest are `_other`.
  //
  // Default: 200
  std::size_t max_hosts = 200;

  // The same for endpoints and policies of policy files.
  //
  // Default: 200
  std::size_t max_endpoints = 200;

  // Asked when the numbers are read, for httpretry_telemetry_dropped_total.
  //
  // Default: none
  std::shared_ptr<const Otlp> exporter;
};

class HTTPRETRY_API Metrics final : public Observer {
 public:
  explicit Metrics(MetricsOptions options = MetricsOptions());
  ~Metrics() override;

  [[nodiscard]] MetricsSnapshot snapshot() const;
  // The text formats. Content-Type: `kPrometheusType` and `kOpenMetricsType`. Exemplars are in
  // OpenMetrics only.
  [[nodiscard]] std::string prometheus() const;
  [[nodiscard]] std::string openmetrics() const;
  // What a scraper wants that sends this header "Accept": the text and its Content-Type.
  struct Page {
    std::string_view type;
    std::string text;
  };
  [[nodiscard]] Page page(std::string_view accept) const;

  void call_ended(const Call& call, const Outcome& outcome) noexcept override;
  void exchange_started(const Call& call, const Request& request, int number) noexcept override;
  void exchange_ended(const Call& call, const Request& request, int number,
                      const Outcome& outcome) noexcept override;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept override;
  void shed(const Call& call, const Error& reason) noexcept override;
  void circuit_changed(const Call& call, const CircuitChange& change) noexcept override;
  void limit_changed(const Call& call, const LimitChange& change) noexcept override;
  void paused(const Call& call, const PauseBegun& pause) noexcept override;
  void resumed(const Call& call, std::string_view key) noexcept override;

  struct State;  // lib/extras/telemetry/metrics_state.hpp

 private:
  std::shared_ptr<State> state_;
};

inline constexpr std::string_view kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

[[nodiscard]] HTTPRETRY_API std::shared_ptr<Metrics> metrics(
    MetricsOptions options = MetricsOptions());

// A snapshot in the text formats.
[[nodiscard]] HTTPRETRY_API std::string prometheus_text(const MetricsSnapshot& snapshot);
[[nodiscard]] HTTPRETRY_API std::string openmetrics_text(const MetricsSnapshot& snapshot);

}  // namespace httpretry
