// metrics(): an observer that counts all calls of its clients. Its counters, histograms and gauges
// have the names that Prometheus and OpenTelemetry recommend.
//
//   const auto numbers = metrics();
//   ClientOptions options;
//   options.observers = {numbers};
//   ...
//   response.set_body(numbers->prometheus());  // in the handler of GET /metrics
//
// Each thread that drives calls keeps its own counts, without a lock; a snapshot adds them up.
// Counters and histograms never decrease. lib/extras/telemetry/README.md lists the names.
#pragma once

#include <httpretry/export.hpp>

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

// A traced send whose duration fell into a bucket of a histogram.
struct HTTPRETRY_API Exemplar {
  Exemplar() = default;

  std::string trace_id;
  std::string span_id;
  double value = 0;  // the duration of the send, in seconds
  WallTime at{};
};

// The values of a metric for one set of labels.
struct HTTPRETRY_API MetricSeries {
  MetricSeries() = default;

  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;  // of a counter or gauge; for a histogram, the sum of its values
  // For a histogram: the number of values in each bucket, not cumulative. The last bucket counts
  // the values above all bounds.
  std::vector<std::uint64_t> counts;
  std::vector<std::optional<Exemplar>> exemplars;  // one for each bucket

  // Returns the sum of `counts`.
  [[nodiscard]] std::uint64_t count() const;
  // Returns an empty text if the series has no such label.
  [[nodiscard]] std::string_view label(std::string_view name) const;
};

// A metric with all of its series.
struct HTTPRETRY_API MetricFamily {
  // The types of Prometheus and OpenMetrics.
  enum class Kind : std::uint8_t { Counter, Gauge, Histogram };
  MetricFamily() = default;

  std::string name;  // as in Prometheus: "httpretry_retries_total"
  std::string help;
  Kind kind = Kind::Counter;
  std::string unit;            // as in OpenTelemetry, such as "s"; may be empty
  std::vector<double> bounds;  // of a histogram: the upper bounds, inclusive
  std::vector<MetricSeries> series;
};

// All metrics at one point in time.
struct HTTPRETRY_API MetricsSnapshot {
  MetricsSnapshot() = default;

  WallTime since{};  // when counting began
  WallTime at{};     // when the snapshot was taken
  std::vector<MetricFamily> families;

  // Returns nullptr if there is no family of that name.
  [[nodiscard]] const MetricFamily* find(std::string_view name) const;
  // The names and values of labels.
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  // Returns the sum of the values of all series of that family that have all of these labels. For
  // a histogram, it adds up the counts. Returns 0 if no series matches.
  [[nodiscard]] double sum(std::string_view name, const Labels& labels = {}) const;
};

// The options of metrics().
struct HTTPRETRY_API MetricsOptions {
  MetricsOptions() = default;

  // The number of servers (host and port) that get their own series, at most 100 000. All others
  // share `_other`.
  //
  // Default: 200
  std::size_t max_hosts = 200;

  // The same for the endpoints of policy files, with their policies.
  //
  // Default: 200
  std::size_t max_endpoints = 200;

  // Supplies httpretry_telemetry_dropped_total when a snapshot is taken.
  //
  // Default: none
  std::shared_ptr<const Otlp> exporter;
};

// The observer that metrics() makes, for ClientOptions::observers of one or several clients. All of
// its functions are thread-safe.
class HTTPRETRY_API Metrics final : public Observer {
 public:
  explicit Metrics(MetricsOptions options = MetricsOptions());
  ~Metrics() override;

  // Returns the values of all metrics now.
  [[nodiscard]] MetricsSnapshot snapshot() const;
  // Return a snapshot in a text format. Its Content-Type is `kPrometheusType` or
  // `kOpenMetricsType`. Only OpenMetrics has exemplars.
  [[nodiscard]] std::string prometheus() const;
  [[nodiscard]] std::string openmetrics() const;
  // The response to a scraper.
  struct Page {
    std::string_view type;  // its Content-Type
    std::string text;
  };
  // Returns a snapshot in the format that a scraper with this "Accept" header prefers.
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

// The Content-Types of the text formats are `kPrometheusType` and `kOpenMetricsType`.
inline constexpr std::string_view kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Returns metrics as an observer for ClientOptions::observers. Several clients may share them.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<Metrics> metrics(
    MetricsOptions options = MetricsOptions());

// Return the snapshot in a text format.
[[nodiscard]] HTTPRETRY_API std::string prometheus_text(const MetricsSnapshot& snapshot);
[[nodiscard]] HTTPRETRY_API std::string openmetrics_text(const MetricsSnapshot& snapshot);

}  // namespace httpretry
