// The state of an Otlp, and its thread, which takes spans from the queue and sends them.
#pragma once

#include "span_queue.hpp"

#include "lib/core/base/descriptor.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/telemetry/otlp.hpp>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace httpretry {

namespace telemetry {

enum class Signal : std::uint8_t { Traces, Metrics };
enum class Why : std::uint8_t { QueueFull, Refused, Rejected, Unreachable, Shutdown };
inline constexpr std::array<std::string_view, 2> kSignals{"traces", "metrics"};
inline constexpr std::array<std::string_view, 5> kWhys{"queue_full", "refused", "rejected",
                                                       "unreachable", "shutdown"};

// Returns the URL for a signal. A path such as "v1/traces" is appended to `endpoint`; an endpoint
// of the signal is used unchanged. Throws std::invalid_argument if it is not a URL.
std::string endpoint_url(const OtlpOptions& options, Signal signal);

}  // namespace telemetry

struct Otlp::State {
  explicit State(OtlpOptions with);

  void add(SpanPtr span) noexcept;
  bool flush(Duration timeout);
  void stop();
  void drop(telemetry::Signal signal, telemetry::Why why, std::uint64_t count) noexcept;

  [[nodiscard]] std::uint64_t dropped(telemetry::Signal signal, telemetry::Why why) const;

  const OtlpOptions options;
  telemetry::SpanQueue queue;
  std::array<std::array<std::atomic<std::uint64_t>, 5>, 2> drops{};
  std::atomic<std::uint64_t> exported = 0;
  std::atomic<bool> closed = false;

  std::mutex mutex;
  std::vector<std::weak_ptr<const Metrics>> metrics;
  std::uint64_t flushes_wanted = 0;
  std::uint64_t flushes_done = 0;
  std::condition_variable flushed;
  bool ending = false;

 private:
  void run();
  // Waits until `until`, or until `wake_` is signaled. Returns false when the thread must end.
  bool wait(Time until);
  void send_spans();
  void send_metrics();
  // Sends a request with a number of spans or data points, and records its result.
  void send(telemetry::Signal signal, std::string body, std::uint64_t items);
  // Counts and reports what the collector did not accept.
  void record_result(telemetry::Signal signal, const Request& request, const Outcome& outcome,
                     std::uint64_t items);
  void report(const std::string& message);

  const std::array<std::string, 2> urls_;
  EventFd wake_{"the OTLP exporter cannot open an eventfd"};
  const int process_;  // detects that this is a forked child
  Client client_;
  std::stop_source stop_;
  std::vector<std::string> reported_;
  std::string unfinished_cause_;  // why the request that stop() canceled had not succeeded
  std::thread thread_;
};

}  // namespace httpretry
