// Prints the outcome of a call.
#pragma once

#include "cli/wait_limit.hpp"
#include "send/download.hpp"
#include "send/options.hpp"
#include "send/write_out.hpp"

#include <string>

namespace httpretry::cli {

// Writes the response to its target and messages to standard error, and returns the exit status.
// `limit` ends the wait until a pipe is opened; its signals end any wait for a reader.
int print_result(const SendOptions& options, const EndedCall& ended, const WaitLimit& limit);

// Returns a hint at an option that would help the user, or "".
std::string advice(const SendOptions& options, const EndedCall& ended);

// Returns a warning if the policy repeated a request that the server may have executed and that is
// not safe to repeat. Otherwise returns "".
std::string repeat_warning(const EndedCall& ended);

}  // namespace httpretry::cli
