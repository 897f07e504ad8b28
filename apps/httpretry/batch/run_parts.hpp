// What a run of `httpretry batch` and one of `httpretry work` have in common.
#pragma once

#include "batch/display.hpp"

#include <csignal>
#include <functional>
#include <memory>
#include <string>

namespace httpretry::cli {

class RunTelemetry;

// Shows how far a run is.
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

// Blocks the signals that run_to_end handles. Threads inherit that, if they start while this
// exists.
class WithoutSignals {
 public:
  WithoutSignals();
  ~WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  ::sigset_t before_;
};

// The headers, policies and environment of its requests.
void prepare_requests(BatchCommand& command);

// By --shared: its clients get the state.
void begin_sharing(BatchCommand& command);
// nullptr where none was asked for.
std::shared_ptr<const RunTelemetry> begin_telemetry(BatchCommand& command);

struct RunEnded {
  batch::RunEnd end{};
  int signal = 0;  // that stopped it
};
// Runs. The first SIGINT or SIGTERM ends the run gently, the second one calls `stop`, and SIGUSR1
// asks how far the run is.
RunEnded run_to_end(batch::Runner& runner, const std::function<batch::RunEnd()>& run,
                    const std::function<void()>& stop);
// "httpretry: 3 of 5 done, 1 dead, 1 waiting". `late`: results that came too late.
std::string end_line(const batch::Counts& counts, std::uint64_t late, batch::RunEnd end,
                     const BatchCommand& command);
// Writes what telemetry there is, and returns the exit status.
int finish_run(const RunEnded& ended, const batch::Counts& counts, const RunTelemetry* telemetry);

// What `command` throws becomes a message and an exit status.
int with_run_errors(const std::function<int()>& command);

}  // namespace httpretry::cli
