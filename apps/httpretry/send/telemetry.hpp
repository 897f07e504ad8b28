// --metrics, --otlp, --har and --log-json, which cover all URLs of a run in all groups.
#pragma once

#include "cli/args.hpp"
#include "cli/wait_limit.hpp"

#include <httpretry/client/client_options.hpp>
#ifdef HTTPRETRY_WITH_TELEMETRY
#include <httpretry/telemetry/telemetry.hpp>
#endif

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

struct TelemetryOptions {
  std::string metrics_file;
  std::string har_file;
  bool har_bodies = false;
  std::optional<std::string> otlp;  // the endpoint; "": the environment's or the default
  bool log_json = false;
};

#ifdef HTTPRETRY_WITH_TELEMETRY
// Returns the flags. `about_har` and `about_otlp` are the help texts of --har and --otlp.
std::vector<Flag> telemetry_flags(TelemetryOptions& to, std::string_view about_har,
                                  std::string_view about_otlp);

class RunTelemetry {
 public:
  // Throws UsageError. With `quiet`, prints no messages about problems.
  RunTelemetry(const TelemetryOptions& options, bool quiet);

  // Adds the observers to a client. Must be called after everything else is set, because the
  // middleware that this may add comes after all others.
  void observe(ClientOptions& client) const;

  // Write the files at the end of the run. They throw WriteError.
  void write_metrics(const WaitLimit& limit) const;
  void write_har(const WaitLimit& limit) const;
  // Sends the remaining spans, for at most one second, or as long as OTEL_EXPORTER_OTLP_TIMEOUT
  // says if no signal arrives.
  void finish(const WaitLimit& limit) const;

 private:
  std::string metrics_file_;
  std::string har_file_;
  Duration flush_limit_;
  std::shared_ptr<Otlp> exporter_;
  std::shared_ptr<Metrics> metrics_;
  std::shared_ptr<Observer> tracer_;
  std::shared_ptr<Observer> log_;
  std::unique_ptr<Har> har_;
  bool keeps_bodies_ = false;
};

// Returns null if no option requests telemetry.
std::shared_ptr<const RunTelemetry> run_telemetry(const TelemetryOptions& options, bool quiet);
#else
// Without httpretry::telemetry the options do not exist.
inline std::vector<Flag> telemetry_flags(TelemetryOptions& /*to*/, std::string_view /*about_har*/,
                                         std::string_view /*about_otlp*/) {
  return {};
}
class RunTelemetry {
 public:
  void observe(ClientOptions& /*client*/) const {}
  void write_metrics(const WaitLimit& /*limit*/) const {}
  void write_har(const WaitLimit& /*limit*/) const {}
  void finish(const WaitLimit& /*limit*/) const {}
};
inline std::shared_ptr<const RunTelemetry> run_telemetry(const TelemetryOptions& /*options*/,
                                                         bool /*quiet*/) {
  return nullptr;
}
#endif

}  // namespace httpretry::cli
