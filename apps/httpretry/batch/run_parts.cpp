#include "batch/run_parts.hpp"

#include "batch/run_signals.hpp"
#include "cli/exit_status.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "cli/wait_limit.hpp"
#include "send/connection.hpp"
#include "send/sender.hpp"
#include "send/shared.hpp"
#include "send/telemetry.hpp"

#include <unistd.h>

namespace httpretry::cli {

RunDisplay::RunDisplay(ProgressStyle style) : style_(style) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (style_ == ProgressStyle::Auto) style_ = terminal ? ProgressStyle::Line : ProgressStyle::Lines;
}

void RunDisplay::set_up(batch::RunnerOptions& runner) {
  if (style_ == ProgressStyle::None) return;
  if (style_ == ProgressStyle::Line) runner.progress_every = std::chrono::milliseconds(200);
  runner.on_progress = [this](const batch::RunProgress& progress) { show(progress); };
}

void RunDisplay::clear() const {
  if (style_ == ProgressStyle::Line) show_status("");
}

void RunDisplay::show(const batch::RunProgress& progress) const {
  if (style_ == ProgressStyle::Line) return show_status(progress_line(progress));
  print_message(style_ == ProgressStyle::Json ? progress_json(progress) : progress_line(progress));
}

void prepare_requests(BatchCommand& command) {
  auto& options = command.batch;
  for (const auto& line : command.headers) {
    if (options.default_headers.try_add_line(line)) continue;
    throw UsageError("option -H: expected \"Name: value\"");
  }
  options.policies = chosen_policies(command.policy);
  add_environment(options.client.connection);
}

int exit_status(const batch::Counts& counts) {
  if (counts.dead > 0) return kErrorStatus;
  return counts.done == counts.total() ? kOk : kTryLater;
}

// The thread of the state leaves the signals to this one.
void begin_sharing(BatchCommand& command) {
  const WithoutSignals blocked;
  const bool quiet = command.progress == ProgressStyle::None;
  command.batch.client.shared_state = shared_state(command.shared, quiet);
}

std::shared_ptr<const RunTelemetry> begin_telemetry(BatchCommand& command) {
  const WithoutSignals blocked;
  auto telemetry = run_telemetry(command.telemetry);
  if (telemetry) telemetry->observe(command.batch.client);
  return telemetry;
}

// A signal that comes now ends only the waits for a collector or a pipe.
bool end_telemetry(const RunTelemetry& telemetry) {
  const Signals signals;
  const WaitLimit limit(signals, std::nullopt);
  telemetry.finish(limit);
  return try_write([&] {
    telemetry.write_metrics(limit);
    telemetry.write_har(limit);
  });
}

}  // namespace httpretry::cli
