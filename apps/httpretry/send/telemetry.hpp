// --metrics, --otlp, --har and --log-json: of all URLs of a run, whatever their groups.
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
  std::optional<std::string> otlp;  // the endpoint; empty: the environment's, or the usual one
  bool log_json = false;
};

#ifdef HTTPRETRY_WITH_TELEMETRY
// `about_har`, `about_otlp`: the help texts of these flags.
std::vector<Flag> telemetry_flags(TelemetryOptions& to, std::string_view about_har,
                                  std::string_view about_otlp);

class RunTelemetry {
 public:
  // Throws UsageError. `quiet`: shows no messages about problems.
  RunTelemetry(const TelemetryOptions& options, bool quiet);

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
std::shared_ptr<const RunTelemetry> run_telemetry(const TelemetryOptions& options, bool quiet);
#else
// Without httpretry::telemetry there are no such options.
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
