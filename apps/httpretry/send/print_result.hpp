// Prints the outcome of a call.
#pragma once

#include "cli/wait_limit.hpp"
#include "send/download.hpp"
#include "send/options.hpp"
#include "send/write_out.hpp"

#include <httpretry/http/response.hpp>

#include <cstddef>

namespace httpretry::cli {

// A call that has ended.
struct EndedCall {
  const Request& request;
  const RetryPolicy& policy;  // by which it was retried
  const Outcome& outcome;
  std::size_t index;         // of the URL
  const Download* download;  // null: the body is in the outcome
  const Connections& connections;
  std::string label;  // begins each line about it; empty for the only URL
  bool explained;     // false: its failure is only counted
};

// Writes the response to its target and messages to standard error; returns the exit status.
// `limit`: for the opening of a pipe; its signals end any wait for a reader.
int print_result(const SendOptions& options, const EndedCall& ended, const WaitLimit& limit);

}  // namespace httpretry::cli
