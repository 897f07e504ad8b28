// The parts of a run that `httpretry batch` and `httpretry work` share.
#pragma once

#include "batch/display.hpp"
#include "send/piped_files.hpp"

#include <csignal>
#include <functional>
#include <memory>
#include <string>

namespace httpretry::cli {

class RunTelemetry;

// RunDisplay shows the progress of a run, in the style of --progress.
class RunDisplay {
 public:
  explicit RunDisplay(ProgressStyle style);
  ~RunDisplay() { clear(); }
  RunDisplay(const RunDisplay&) = delete;
  RunDisplay& operator=(const RunDisplay&) = delete;

  void set_up(batch::RunnerOptions& runner);
  void clear() const;
  [[nodiscard]] bool quiet() const { return style_ == ProgressStyle::None; }

 private:
  void show(const batch::RunProgress& progress) const;
  ProgressStyle style_;
};

// WithoutSignals blocks the signals that run_to_end handles while it exists. Threads that start in
// this time inherit the block.
class WithoutSignals {
 public:
  WithoutSignals();
  ~WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  ::sigset_t before_;
};

// Blocks SIGUSR1, so that it does not end the process. run_to_end answers one that has arrived.
void block_progress_signal();
// Sets the headers, the policies and the environment of the requests.
void prepare_requests(BatchCommand& command);
// Prompts for missing passwords, and sets the credentials. Copies the certificates, keys and netrc
// files that are pipes, and returns the copies, which the run needs until its end. A signal ends
// the process. Throws UsageError and ReadError.
PipedFiles complete_connection(BatchCommand& command);

// Implements --shared: gives the clients the shared state.
void begin_sharing(BatchCommand& command);
// Returns the telemetry of the run, or nullptr if no option asks for any. Sets the `other_files` of
// the batch, which no response body may replace.
std::shared_ptr<const RunTelemetry> begin_telemetry(BatchCommand& command);

// Implements --oauth2: gives the client a middleware that adds tokens. Must be called after the
// functions above, because the client that fetches the tokens has the same options. Throws
// UsageError and ReadError.
void begin_tokens(BatchCommand& command);

struct RunEnded {
  batch::RunEnd end{};
  int signal = 0;  // the one that ended the run, or 0
};
// Calls `run` and handles signals until it returns. The first SIGHUP, SIGINT or SIGTERM lets the
// requests in flight end, the second one calls `stop`. SIGUSR1 shows the progress.
RunEnded run_to_end(batch::Runner& runner, const std::function<batch::RunEnd()>& run,
                    const std::function<void()>& stop);
// Returns "httpretry: 3 of 5 done, 1 dead, 1 waiting". `late_results` is the number of results that
// a worker of a queue filed after its lease.
std::string end_line(const batch::Counts& counts, batch::RunEnd end, const BatchCommand& command,
                     std::uint64_t late_results = 0);
// Returns the message after a run that ended because the remaining jobs have to wait longer than
// --max-idle. `when` is the time at which the first of them may be sent: "at 2026-…", "in 5 min".
std::string idle_text(const std::string& when, const BatchCommand& command);
// Writes the telemetry, if there is any, and returns the exit status.
int finish_run(const RunEnded& ended, const batch::Counts& counts, const RunTelemetry* telemetry);

// Runs `command`. Turns an error of the store into a message and an exit status, and an invalid
// option into UsageError.
int with_run_errors(const std::function<int()>& command);

}  // namespace httpretry::cli
