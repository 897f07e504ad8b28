// Prints the outcome of a call.
#pragma once

#include "send/download.hpp"
#include "send/options.hpp"
#include "send/write_out.hpp"

#include <httpretry/http/response.hpp>

#include <cstddef>

namespace httpretry::cli {

// A call that has ended.
struct EndedCall {
  const Request& request;
  const Outcome& outcome;
  std::size_t index;         // of the URL
  const Download* download;  // null: the body is in the outcome
  const Connections& connections;
};

// Writes the response to its target and messages to standard error; returns the exit status.
// `cancel` as for write_all.
int print_result(const SendOptions& options, const EndedCall& ended, int cancel);

}  // namespace httpretry::cli
