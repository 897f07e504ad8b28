// The options of `httpretry batch`.
#pragma once

#include "cli/commands.hpp"
#include "cli/policy_options.hpp"
#include "send/telemetry.hpp"

#include <httpretry/batch/batch.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry::cli {

enum class ProgressStyle : std::uint8_t { Auto, Line, Lines, Json, None };

struct BatchCommand {
  batch::BatchOptions batch;
  PolicyChoice policy;
  std::vector<std::string> headers;
  bool check = false;
  bool dry_run = false;
  bool no_results = false;
  ProgressStyle progress = ProgressStyle::Auto;
  bool status = false;
  bool explain = false;
  std::optional<batch::State> print_jobs;  // --export
  TelemetryOptions telemetry;
  bool enqueue = false;
  std::string queue;                  // a URL
  bool force = false;                 // accept a server that may delete keys
  std::optional<std::string> shared;  // --shared
};

// The flags that `httpretry work` also has.
std::vector<Flag> request_flags(BatchCommand& to);
std::vector<Flag> response_flags(BatchCommand& to);
std::vector<Flag> flow_flags(BatchCommand& to);
std::vector<Flag> connection_flags(BatchCommand& to);
Flag key_lifetime_flag(BatchCommand& to);
Flag queue_flag(BatchCommand& to);

FlagTable batch_flags(BatchCommand& to);

}  // namespace httpretry::cli
