#include "send/telemetry.hpp"

#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

#include <httpretry/chain/middleware.hpp>

#include <stdexcept>

namespace httpretry::cli {
namespace {

using namespace std::chrono_literals;

// How long the end of a run waits for the collector, which may be dead.
constexpr Duration kFlush = 1s;

constexpr std::uint64_t kMostRecorded = 10U << 20U;  // bytes of a body in an archive

// Only this variable turns traces on: a command must not send unexpected requests because another
// OTEL_ variable is set.
bool environment_wants_traces() { return environment_variable("OTEL_TRACES_EXPORTER") == "otlp"; }

using Problems = std::vector<std::string>;

// Returns the exporter that sends traces and metrics to the collector that --otlp or the OTEL_
// variables name. Adds a message to `problems` for each variable that cannot be used. With `quiet`,
// problems while it exports are not printed. Sets `flush_limit` if a variable says how long to wait
// for the collector. Throws UsageError if the URL of --otlp is invalid.
std::shared_ptr<Otlp> exporter_for(const TelemetryOptions& options, bool quiet, Problems& problems,
                                   Duration& flush_limit) {
  auto otlp = OtlpOptions::from_environment(&problems);
  if (!environment_variable("OTEL_EXPORTER_OTLP_TIMEOUT").empty()) flush_limit = otlp.timeout;
  if (options.otlp && !options.otlp->empty()) {  // --otlp=URL, where the traces go
    otlp.endpoint = *options.otlp;
    // OTEL_EXPORTER_OTLP_TRACES_ENDPOINT may have set this one, which would take precedence. The
    // endpoint of the metrics stays, because --otlp is about traces.
    otlp.traces_endpoint.clear();
  }
  // A name other than the default comes from the variables.
  const bool is_default_name = otlp.service_name == OtlpOptions().service_name;
  if (is_default_name) otlp.service_name = "httpretry";
  otlp.shutdown = Duration::zero();  // no wait in the destructor: RunTelemetry::finish waits
  if (!quiet) {
    otlp.on_problem = [](const std::string& message) {
      print_message("httpretry: " + printable(message));
    };
  }
  try {
    return std::make_shared<Otlp>(std::move(otlp));
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("option --otlp: ") + error.what());
  }
}

std::shared_ptr<Observer> tracer_for(const Otlp& exporter, Problems& problems) {
  TracesOptions options;
  options.sink = exporter.sink();
  options.hide_query = true;
  sample_as_environment(options, &problems);
  return traces(std::move(options));
}

}  // namespace

std::vector<Flag> telemetry_flags(TelemetryOptions& to, std::string_view about_har,
                                  std::string_view about_otlp) {
  return {
      {'\0', "metrics", "FILE",
       "write metrics of the run in the format of Prometheus; - is standard output",
       store(to.metrics_file)},
      {'\0', "har", "FILE", about_har, store(to.har_file)},
      {'\0', "har-bodies", "",
       "add the response bodies of up to 10 MiB, which may have secrets, to the archive, for "
       "`serve --har`; a response is then held in memory until it is complete",
       enable(to.har_bodies)},
      {'\0', "otlp", "[=URL]", about_otlp, store(to.otlp)},
      {'\0', "log-json", "",
       "show each send, each call and each message as a line of JSON on standard error",
       [&to](Text /*value*/) {
         to.log_json = true;
         use_json_messages();
       }},
  };
}

// Creates the objects for the telemetry that the options request: traces (--otlp), metrics
// (--metrics), an HTTP archive (--har) and a log (--log-json). The others stay null. With `quiet`,
// prints no messages about problems.
RunTelemetry::RunTelemetry(const TelemetryOptions& options, bool quiet)
    : metrics_file_(options.metrics_file), har_file_(options.har_file), flush_limit_(kFlush) {
  if (options.otlp || environment_wants_traces()) {
    Problems problems;
    // May change flush_limit_. `quiet` concerns the problems that arise later, during the exports.
    exporter_ = exporter_for(options, quiet, problems, flush_limit_);
    tracer_ = tracer_for(*exporter_, problems);
    if (quiet) problems.clear();
    for (const auto& problem : problems) print_message("httpretry: " + printable(problem));
  }
  if (!metrics_file_.empty()) {
    MetricsOptions metrics_options;
    metrics_options.exporter = exporter_;  // null: the metrics go only to the file
    metrics_ = metrics(std::move(metrics_options));
  }
  if (!har_file_.empty()) {
    HarOptions har_options;
    if (options.har_bodies) har_options.max_body = kMostRecorded;
    har_ = std::make_unique<Har>(har_options);
  }
  keeps_bodies_ = har_ && options.har_bodies;
  if (options.log_json) {
    log_ = json_log([](std::string_view line) { print_json(std::string(line)); });
  }
}

void RunTelemetry::observe(ClientOptions& client) const {
  if (tracer_) {  // first, so that the other observers know the trace
    client.observers.insert(client.observers.begin(), tracer_);
    client.attempt_middlewares.push_back(propagate());
  }
  if (metrics_) client.observers.push_back(metrics_);
  if (log_) client.observers.push_back(log_);
  if (har_) client.observers.push_back(har_->observer());
  if (keeps_bodies_) {
    // The body then stays in memory, and the client passes it to the sink at the end of the call.
    client.attempt_middlewares.push_back(on_request(
        "har bodies", [](Request& request, Call&) { request.edit_options().sink.reset(); }));
  }
}

void RunTelemetry::write_metrics(const WaitLimit& limit) const {
  if (!metrics_) return;
  limit.restart();
  write_to(metrics_file_, metrics_->prometheus(), &limit);
}

void RunTelemetry::write_har(const WaitLimit& limit) const {
  if (!har_) return;
  limit.restart();
  write_to(har_file_, har_->text(), &limit, Readers::Owner);
}

// Waits in short steps, so that a signal shortens the wait.
void RunTelemetry::finish(const WaitLimit& limit) const {
  if (!exporter_) return;
  constexpr Duration kStep = 100ms;
  const auto most = [&] { return limit.signals().received() != 0 ? kFlush : flush_limit_; };
  for (Duration waited{}; waited < most(); waited += kStep) {
    if (exporter_->flush(kStep)) return;
  }
}

std::shared_ptr<const RunTelemetry> run_telemetry(const TelemetryOptions& options, bool quiet) {
  if (options.har_bodies && options.har_file.empty()) {
    throw UsageError("option --har-bodies needs --har FILE");
  }
  const bool wanted = options.otlp || environment_wants_traces() || options.log_json ||
                      !options.metrics_file.empty() || !options.har_file.empty();
  return wanted ? std::make_shared<const RunTelemetry>(options, quiet) : nullptr;
}

}  // namespace httpretry::cli
