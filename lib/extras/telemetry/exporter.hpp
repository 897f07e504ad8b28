// The thread of an Otlp: takes spans from the queue, and sends them.
#pragma once

#include "span_queue.hpp"

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

// Where an endpoint of the options leads: the base gets "v1/traces", one of a signal stays as it
// is. Throws std::invalid_argument.
std::string endpoint_url(const OtlpOptions& options, Signal signal);

}  // namespace telemetry

struct Otlp::State {
  explicit State(OtlpOptions with);
  ~State();

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
  void wake() const noexcept;
  void run();
  bool wait(Time until);
  bool send_spans();
  void send_metrics();
  bool send(telemetry::Signal signal, std::string body, std::uint64_t items);
  void judge(telemetry::Signal signal, const Outcome& outcome, std::uint64_t items);
  void tell(const std::string& message);

  const std::array<std::string, 2> urls_;
  const int wake_;  // an eventfd
  const int process_;
  Client client_;
  std::stop_source stop_;
  std::vector<std::string> told_;
  std::thread thread_;
};

}  // namespace httpretry
