// Prints the outcome of a call.
#pragma once

#include "cli/wait_limit.hpp"
#include "send/download.hpp"
#include "send/options.hpp"
#include "send/write_out.hpp"

#include <string>

namespace httpretry::cli {

// Writes the response to its target and messages to standard error; returns the exit status.
// `limit`: for the opening of a pipe; its signals end any wait for a reader.
int print_result(const SendOptions& options, const EndedCall& ended, const WaitLimit& limit);

// Returns advice on an option that would help the user, or an empty text.
std::string advice(const SendOptions& options, const EndedCall& ended);

// The policy repeated a request that the server may have executed, and doing so twice may do harm.
// Empty if it did not.
std::string repeat_warning(const EndedCall& ended);

}  // namespace httpretry::cli
