// Otlp: sends spans and metrics to a collector, as OTLP over HTTP in JSON.
//
//   const auto exporter = std::make_shared<Otlp>(OtlpOptions::from_environment());
//   options.observers = {traces(exporter->sink()), numbers};
//   exporter->export_metrics(numbers);
//
// It has a client and a thread of its own, so its requests are neither traced nor counted, and a
// loop never waits for it: a span goes into a queue without a lock, and where the queue is full it
// is dropped and counted. The retries are those of the preset `otlp`.
#pragma once

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/retry/retry_policy.hpp>
#include <httpretry/telemetry/metrics.hpp>
#include <httpretry/telemetry/traces.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

struct HTTPRETRY_API OtlpOptions {
  OtlpOptions() = default;

  // The collector. "v1/traces" and "v1/metrics" are appended.
  std::string endpoint = "http://localhost:4318";
  // Used as they are, instead of the endpoint.
  std::string traces_endpoint;
  std::string metrics_endpoint;
  // Sent with each request: an API key, perhaps.
  Headers headers;
  // Of one attempt.
  Duration timeout = std::chrono::seconds(10);
  // How failed requests are retried. Empty: the preset `otlp`.
  std::optional<RetryPolicy> policy;
  TransportOptions connection;

  // What is told of the program: `service.name` and more.
  std::string service_name = "unknown_service";
  std::vector<std::pair<std::string, std::string>> resource;

  // Spans that wait; a power of two, others are rounded up.
  std::size_t queue = 2048;
  // Spans in one request.
  std::size_t batch = 512;
  // The longest time that a span waits, and the time between two exports of metrics.
  Duration interval = std::chrono::seconds(5);
  Duration metrics_interval = std::chrono::seconds(60);
  // The longest time that the destructor waits for what is still to be sent.
  Duration shutdown = std::chrono::seconds(10);

  // Told what went wrong, each thing once, on the thread of the exporter, and by its destructor
  // what was left. It must not throw.
  std::function<void(const std::string& message)> on_problem;

  // OTEL_EXPORTER_OTLP_ENDPOINT, …_TRACES_ENDPOINT, …_METRICS_ENDPOINT, …_HEADERS, …_TIMEOUT,
  // OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES. What cannot be used, and variables of
  // OpenTelemetry that have no effect here, are told in `problems`.
  [[nodiscard]] static OtlpOptions from_environment(std::vector<std::string>* problems = nullptr);
};

// OTEL_TRACES_SAMPLER with its argument, and OTEL_SDK_DISABLED, which samples nothing.
HTTPRETRY_API void sample_as_environment(TracesOptions& options,
                                         std::vector<std::string>* problems = nullptr);

// Spans, or data points of metrics, that no collector has taken.
struct HTTPRETRY_API DroppedTelemetry {
  std::string_view signal;  // "traces", "metrics"
  // "queue_full"; "refused" by a final status; "rejected" in a partial success; "unreachable", all
  // attempts failed; "shutdown", there was no time left.
  std::string_view why;
  std::uint64_t count = 0;
};

class HTTPRETRY_API Otlp {
 public:
  // Throws std::invalid_argument for an endpoint that is no URL, and std::system_error where the
  // thread cannot be started.
  explicit Otlp(OtlpOptions options = OtlpOptions());
  // flush(options.shutdown), then what is left is dropped.
  ~Otlp();
  Otlp(const Otlp&) = delete;
  Otlp& operator=(const Otlp&) = delete;

  // For TracesOptions::sink. It may be used longer than this object; spans are then dropped.
  [[nodiscard]] std::function<void(SpanPtr)> sink() const;
  void add(SpanPtr span) noexcept;
  // From now on, as long as the Metrics live.
  void export_metrics(const std::shared_ptr<const Metrics>& metrics);

  // Sends what there is, and waits for the responses. False if that took longer; then it goes on.
  // Not on a thread that drives a loop.
  bool flush(Duration timeout);
  // Those that are not zero.
  [[nodiscard]] std::vector<DroppedTelemetry> dropped() const;
  // Spans that a collector has taken.
  [[nodiscard]] std::uint64_t exported() const;

  struct State;  // lib/extras/telemetry/exporter.hpp

 private:
  std::shared_ptr<State> state_;
};

// The bodies of the requests, as JSON.
[[nodiscard]] HTTPRETRY_API std::string otlp_json(const std::vector<SpanPtr>& spans,
                                                  const OtlpOptions& options);
[[nodiscard]] HTTPRETRY_API std::string otlp_json(const MetricsSnapshot& snapshot,
                                                  const OtlpOptions& options);

}  // namespace httpretry
