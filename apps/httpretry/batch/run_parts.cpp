#include "batch/run_parts.hpp"

#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "cli/wait_limit.hpp"
#include "send/compression.hpp"
#include "send/connection.hpp"
#include "send/oauth2.hpp"
#include "send/sender.hpp"
#include "send/shared.hpp"
#include "send/telemetry.hpp"

#include <httpretry/client/report.hpp>

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace httpretry::cli {
namespace {

::sigset_t our_signals() {
  auto set = stop_signals();
  ::sigaddset(&set, SIGUSR1);
  return set;
}

// Returns the exit status of a run that was not stopped by a signal.
int exit_status(const batch::Counts& counts) {
  if (counts.dead > 0) return kErrorStatus;
  return counts.done == counts.total() ? kOk : kTryLater;
}

// Throws UsageError if a file or directory that libcurl needs for connections cannot be read.
// Without this check, the run would begin, and each of its jobs would fail for good.
void check_files(const TransportOptions& connection) {
  const auto& certificate = connection.client_certificate;
  // The value of --pinnedpubkey is a file, or hashes such as "sha256//…".
  const bool pins_file = !connection.pinned_keys.starts_with("sha256//");
  // An empty path means that the option is not given.
  const std::pair<const char*, std::string> files[] = {
      {"--netrc-file", connection.netrc.value_or("")},
      {"--cacert", connection.ca_file},
      {"--capath", connection.ca_path},
      {"--cert", certificate.file},
      {"--key", certificate.key_file},
      {"--pinnedpubkey", pins_file ? connection.pinned_keys : ""}};
  for (const auto& [flag, path] : files) {
    if (path.empty() || ::access(path.c_str(), R_OK) == 0) continue;
    throw UsageError("option " + std::string(flag) + ": cannot read " + printable(path) + ": " +
                     std::generic_category().message(errno));
  }
}

// Turns a temporary failure of the token server into the error of an open circuit, after which a
// job waits. Otherwise an outage of that server would end all jobs as dead.
void wait_for_token(const Request& /*request*/, Outcome& outcome, Call& call) {
  if (outcome || outcome.error().permanent) return;
  // The token is missing before the first attempt, or after one that got a 401.
  const auto* last = call.history().last();
  if (last != nullptr && last->status != 401) return;
  auto& code = outcome.error().code;
  const bool is_network_error = code >= Errc::Resolve && code <= Errc::Protocol;
  if (is_network_error || code == Errc::Status) code = Errc::CircuitOpen;
}

// Sends and writes the telemetry. Returns false if a file could not be written. A signal that
// arrives now only ends the wait for a pipe.
bool end_telemetry(const RunTelemetry& telemetry) {
  const Signals signals;
  const WaitLimit limit(signals, std::nullopt);
  telemetry.finish(limit);
  const bool has_metrics = try_write([&] { telemetry.write_metrics(limit); });
  const bool has_har = try_write([&] { telemetry.write_har(limit); });
  return has_metrics && has_har;
}

}  // namespace

void block_progress_signal() {
  const auto set = signal_set({SIGUSR1});
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

WithoutSignals::WithoutSignals() : before_{} {
  const auto set = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

WithoutSignals::~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

RunDisplay::RunDisplay(ProgressStyle style) : style_(style) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (style_ == ProgressStyle::Auto) style_ = terminal ? ProgressStyle::Line : ProgressStyle::Lines;
}

void RunDisplay::set_up(batch::RunnerOptions& runner) {
  runner.on_shortage = [this](const std::string& what) {
    clear();
    print_message("httpretry: fewer requests are sent at a time: " + what);
  };
  if (style_ == ProgressStyle::None) return;
  if (style_ == ProgressStyle::Line) runner.progress_every = std::chrono::milliseconds(200);
  runner.on_progress = [this](const batch::RunProgress& progress) { show(progress); };
}

void RunDisplay::clear() const {
  if (style_ == ProgressStyle::Line) show_status("");
}

void RunDisplay::show(const batch::RunProgress& progress) const {
  if (style_ == ProgressStyle::Line) return show_status(progress_line(progress));
  if (style_ == ProgressStyle::Json) return print_json(progress_json(progress));
  print_message(progress_line(progress));
}

void prepare_requests(BatchCommand& command) {
  auto& options = command.batch;
  for (const auto& line : command.headers) {
    if (options.default_headers.try_add_line(line)) continue;
    throw UsageError("option -H: expected \"Name: value\"");
  }
  // `httpretry` sends this header, too. The client itself adds the User-Agent.
  if (!options.default_headers.contains("Accept")) options.default_headers.add("Accept", "*/*");
  options.policies = chosen_policies(command.policy);
  add_environment_certificates(options.client.connection);
}

// Completes the options for connections: checks the files, prompts for missing passwords, and sets
// the credentials of the requests (-u) and of the proxy (-U). Copies the certificates, keys and
// netrc files that are pipes, because libcurl would read them again for each connection. Returns
// the copies, which the run needs until its end. A signal during a prompt or a read ends the
// process.
PipedFiles complete_connection(BatchCommand& command) {
  auto& options = command.batch;
  auto& connection = options.client.connection;
  check_files(connection);
  connection.content_codings = content_codings();  // for --compressed
  // Restores the signal mask when the function returns, because `signals` leaves signals blocked.
  const WithoutSignals mask_restorer;
  const Signals signals;
  const int cancel = signals.descriptor();  // becomes readable when a signal arrives
  try {
    if (command.user) {
      complete_credentials(*command.user, "-u", cancel);
      options.credentials = credentials_of(*command.user, command.auth);
    }
    if (!command.proxy_user.empty()) {
      complete_credentials(command.proxy_user, "-U", cancel);
      connection.proxy.credentials = credentials_of(command.proxy_user, Credentials::Scheme::Basic);
    }
    return {connection, /*tls=*/true, cancel};  // reads the pipes
  } catch (const ReadError&) {
    if (signals.received() == 0) throw;
    end_by(signals.received());
  }
}

// The signals are blocked so that the thread of the shared state does not receive them.
void begin_sharing(BatchCommand& command) {
  const WithoutSignals blocked;
  const bool quiet = command.progress == ProgressStyle::None;
  command.batch.client.shared_state = shared_state(command.shared, quiet);
}

void begin_tokens(BatchCommand& command) {
  auto& client = command.batch.client;
  const auto tokens = read_oauth2(command.oauth2, command.user.has_value());
  if (!tokens) return;
  auto token_client = client;
  token_client.policies = command.batch.policies;
  client.call_middlewares.push_back(on_outcome("tokens", wait_for_token));
  client.call_middlewares.push_back(tokens(std::move(token_client)));
}

// Also lists the other files that this process writes, because the run must not write to them.
std::shared_ptr<const RunTelemetry> begin_telemetry(BatchCommand& command) {
  const auto file_of = [](const std::string& path) { return path == "-" ? "/dev/stdout" : path; };
  command.batch.other_files = {{"metrics", file_of(command.telemetry.metrics_file)},
                               {"HTTP archive", file_of(command.telemetry.har_file)},
                               {"messages", "/dev/stderr"}};
  const WithoutSignals blocked;
  auto telemetry = run_telemetry(command.telemetry, false);
  if (telemetry) telemetry->observe(command.batch.client);
  return telemetry;
}

// Calls `run` and handles signals until it returns: SIGUSR1 shows the progress, the first SIGHUP,
// SIGINT or SIGTERM lets the requests in flight end, and the second one calls `stop`. Returns how
// the run ended, and that first signal (0: none).
RunEnded run_to_end(batch::Runner& runner, const std::function<batch::RunEnd()>& run,
                    const std::function<void()>& stop) {
  std::atomic<int> first_signal = 0;
  const SignalThread signals(our_signals(), [&](const auto& info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGUSR1) return runner.ask_progress();
    if (first_signal != 0) return stop();
    first_signal = signal;
    runner.finish_up();
    print_message("httpretry: waiting for the requests in flight; a second signal stops them");
  });
  const auto end = run();
  return {.end = end, .signal = first_signal};
}

// Returns the line that ends a run: the number of jobs in each state and, if the run ended early,
// the reason.
std::string end_line(const batch::Counts& counts, batch::RunEnd end, const BatchCommand& command,
                     std::uint64_t late_results) {
  auto line = "httpretry: " + grouped(counts.done) + " of " + grouped(counts.total()) + " done";
  const auto add = [&](std::uint64_t count, const char* state) {
    if (count > 0) line += ", " + grouped(count) + state;
  };
  add(counts.dead, " dead");
  add(counts.waiting, " waiting");
  add(counts.queued + counts.sending, " not sent");
  add(counts.unknown, " unknown");
  add(late_results, " of this worker too late");
  if (end == batch::RunEnd::Failures) {
    line += "; ended because " + grouped(command.batch.runner.max_failures) + " failed";
  }
  if (end == batch::RunEnd::Shortage) {
    line += "; ended because no further request could be sent within --max-idle (" +
            duration_text(command.batch.runner.max_shortage) + ")";
  }
  return line;
}

std::string idle_text(const std::string& when, const BatchCommand& command) {
  return "httpretry: all remaining jobs must wait longer than --max-idle (" +
         duration_text(command.batch.runner.max_idle) + "); run the same command again " + when +
         " or later, or set a longer --max-idle";
}

int finish_run(const RunEnded& ended, const batch::Counts& counts, const RunTelemetry* telemetry) {
  const bool written = telemetry == nullptr || end_telemetry(*telemetry);
  if (ended.end == batch::RunEnd::Stopped) return 128 + ended.signal;
  return written ? exit_status(counts) : kWriteError;
}

int with_run_errors(const std::function<int()>& command) {
  try {
    return command();
  } catch (const batch::StoreError& error) {
    show_status("");
    print_message(std::string("httpretry: ") + error.what());
    return kWriteError;
  } catch (const std::invalid_argument& error) {
    throw UsageError(with_flag_name(error.what()));
  }
}

}  // namespace httpretry::cli
