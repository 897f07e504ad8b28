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
enum class StatusFormat : std::uint8_t { Text, Json };

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
  StatusFormat format = StatusFormat::Text;
  std::optional<std::string> user;  // "name:password", or "name" before the prompt
  Credentials::Scheme auth = Credentials::Scheme::Basic;
  std::string oauth2;      // a file; empty: none
  std::string proxy_user;  // as `user`; empty: none
};

// The flags that `httpretry work` also has.
std::vector<Flag> request_flags(BatchCommand& to);
std::vector<Flag> response_flags(BatchCommand& to);
std::vector<Flag> flow_flags(BatchCommand& to);
std::vector<Flag> connection_flags(BatchCommand& to);
Flag key_lifetime_flag(BatchCommand& to);
Flag queue_flag(BatchCommand& to);
Flag format_flag(BatchCommand& to);
// Throws UsageError if --format is given without --status. Called if --status is not given.
void check_format(const BatchCommand& command);

// Returns the duration of a policy for a number of seconds: "60s", "500ms", or "none" for 0. Throws
// UsageError, with `flag` as the name in the message.
std::string policy_time(Text seconds, std::string_view flag);

// Returns the function for the end of a message about an unknown option. For an option of
// `httpretry` or curl, the message names the flag of `command`, the setting of a policy or the
// field of the input line to use instead.
AboutUnknown about_unknown_in(std::string_view command);

FlagTable batch_flags(BatchCommand& to);

}  // namespace httpretry::cli
