// What a run of `httpretry batch` and one of `httpretry work` have in common.
#pragma once

#include "batch/display.hpp"

#include <memory>

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

// The headers, policies and environment of its requests.
void prepare_requests(BatchCommand& command);

// Of jobs that all have had their turn.
int exit_status(const batch::Counts& counts);

// By --shared: its clients get the state.
void begin_sharing(BatchCommand& command);
// nullptr where none was asked for.
std::shared_ptr<const RunTelemetry> begin_telemetry(BatchCommand& command);
// False: it could not be written.
bool end_telemetry(const RunTelemetry& telemetry);

}  // namespace httpretry::cli
