// --metrics, --otlp, --har and --log-json: of all URLs of a run, whatever their groups.
#pragma once

#include "cli/wait_limit.hpp"

#include <httpretry/client/client_options.hpp>
#ifdef HTTPRETRY_WITH_TELEMETRY
#include <httpretry/telemetry/telemetry.hpp>
#endif

#include <memory>
#include <string>

namespace httpretry::cli {

struct SendOptions;

#ifdef HTTPRETRY_WITH_TELEMETRY
class RunTelemetry {
 public:
  // Throws UsageError.
  explicit RunTelemetry(const SendOptions& options);

  // Called last for each client: the middleware that it may add must come after all others.
  void observe(ClientOptions& client) const;

  // At the end of the run. Throw WriteError.
  void write_metrics(const WaitLimit& limit) const;
  void write_har(const WaitLimit& limit) const;
  // Sends the rest of the spans, but not for long.
  void finish(const WaitLimit& limit) const;

 private:
  std::string metrics_file_;
  std::string har_file_;
  std::shared_ptr<Otlp> exporter_;
  std::shared_ptr<Metrics> metrics_;
  std::shared_ptr<Observer> tracer_;
  std::shared_ptr<Observer> log_;
  std::unique_ptr<Har> har_;
};

// Null where no option asks for any.
std::shared_ptr<const RunTelemetry> run_telemetry(const SendOptions& options);
#else
// Without httpretry::telemetry there are no such options.
class RunTelemetry {
 public:
  void observe(ClientOptions& /*client*/) const {}
  void write_metrics(const WaitLimit& /*limit*/) const {}
  void write_har(const WaitLimit& /*limit*/) const {}
  void finish(const WaitLimit& /*limit*/) const {}
};
inline std::shared_ptr<const RunTelemetry> run_telemetry(const SendOptions& /*options*/) {
  return nullptr;
}
#endif

}  // namespace httpretry::cli
