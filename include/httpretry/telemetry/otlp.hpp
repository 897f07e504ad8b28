// Otlp: exports spans and metrics to a collector, as OTLP over HTTP in JSON.
//
//   const auto exporter = std::make_shared<Otlp>(OtlpOptions::from_environment());
//   options.observers = {traces(exporter->sink()), numbers};
//   exporter->export_metrics(numbers);
//
// An exporter has its own client and thread, so its requests are neither traced nor counted, and no
// loop waits for it. Spans go into a lock-free queue. If the queue is full, a new span is dropped
// and counted. The preset `otlp` defines the retries.
#pragma once

#include <httpretry/export.hpp>

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

// The options of an Otlp exporter: the collector, and how to send to it.
struct HTTPRETRY_API OtlpOptions {
  OtlpOptions() = default;

  // The base URL of the collector, to which "v1/traces" and "v1/metrics" are appended.
  std::string endpoint = "http://localhost:4318";
  // Take precedence over `endpoint`, and are used unchanged.
  std::string traces_endpoint;
  std::string metrics_endpoint;
  // Sent with each request, for example an API key.
  Headers headers;
  // The longest time that one attempt may take.
  Duration timeout = std::chrono::seconds(10);
  // How failed requests are retried. Empty: the preset `otlp`.
  std::optional<RetryPolicy> policy;
  TransportOptions connection;  // TLS, proxy and so on, for the requests to the collector
  // Compresses the requests: "gzip", or empty for none. A collector that refuses that with status
  // 415 gets the requests as they are.
  std::string compression;

  // The resource attributes, which describe the program: `service.name` and others.
  std::string service_name = "unknown_service";
  std::vector<std::pair<std::string, std::string>> resource;

  // The most spans that can wait to be sent, rounded up to a power of two; at most 2^30.
  std::size_t queue = 2048;
  // The most spans in one request, at least 1.
  std::size_t batch = 512;
  // The longest time that a span waits before it is sent, and the time between two exports of
  // metrics. Both are at least 10 ms.
  Duration interval = std::chrono::seconds(5);
  Duration metrics_interval = std::chrono::seconds(60);
  // The longest time that the destructor spends on sending what is left.
  Duration shutdown = std::chrono::seconds(10);

  // Receives a message about each problem, once, on the exporter's thread. The destructor calls it
  // if items are dropped at the end. It must not throw.
  std::function<void(const std::string& message)> on_problem;

  // Reads OTEL_EXPORTER_OTLP_ENDPOINT, …_TRACES_ENDPOINT, …_METRICS_ENDPOINT, …_HEADERS, …_TIMEOUT,
  // …_COMPRESSION,
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. Adds a message to `problems` for each value
  // that cannot be used, and for OpenTelemetry's variables that have no effect here.
  [[nodiscard]] static OtlpOptions from_environment(std::vector<std::string>* problems = nullptr);
};

// Sets the sampling as OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG request. If
// OTEL_SDK_DISABLED is "true", nothing is sampled.
HTTPRETRY_API void sample_as_environment(TracesOptions& options,
                                         std::vector<std::string>* problems = nullptr);

// A number of spans, or of data points of metrics, that were not exported.
struct HTTPRETRY_API DroppedTelemetry {
  std::string_view signal;  // "traces", "metrics"
  // "queue_full"; "refused": the collector sent a final status; "rejected": in a partial success;
  // "unreachable": all attempts failed; "shutdown": no time was left.
  std::string_view why;
  std::uint64_t count = 0;
};

// Exports spans and metrics on its own thread. All of its functions are thread-safe.
class HTTPRETRY_API Otlp {
 public:
  // Throws std::invalid_argument if an endpoint is not a URL or `batch` is 0, and std::system_error
  // if the thread cannot be started.
  explicit Otlp(OtlpOptions options = OtlpOptions());
  // Calls flush(options.shutdown), then drops what is left.
  ~Otlp();
  Otlp(const Otlp&) = delete;
  Otlp& operator=(const Otlp&) = delete;

  // Returns a function for TracesOptions::sink. It may outlive this object; it then drops all
  // spans.
  [[nodiscard]] std::function<void(SpanPtr)> sink() const;
  // Adds a span to those that wait for their export. Drops it if too many wait.
  void add(SpanPtr span) noexcept;
  // Exports these metrics periodically until they are destroyed.
  void export_metrics(const std::shared_ptr<const Metrics>& metrics);

  // Sends all spans and metrics, and waits for the responses. Returns false after `timeout`; the
  // exporter then continues to send. Must not be called on a thread that drives a loop.
  bool flush(Duration timeout);
  // Returns the counts that are not zero.
  [[nodiscard]] std::vector<DroppedTelemetry> dropped() const;
  // Returns the number of spans that the collector has accepted.
  [[nodiscard]] std::uint64_t exported() const;

  struct State;  // lib/extras/telemetry/exporter.hpp

 private:
  std::shared_ptr<State> state_;
};

// Return the body of a request, as JSON.
[[nodiscard]] HTTPRETRY_API std::string otlp_json(const std::vector<SpanPtr>& spans,
                                                  const OtlpOptions& options);
[[nodiscard]] HTTPRETRY_API std::string otlp_json(const MetricsSnapshot& snapshot,
                                                  const OtlpOptions& options);

}  // namespace httpretry
