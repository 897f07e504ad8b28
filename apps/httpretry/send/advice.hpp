// What to tell the user about a call, besides what happened.
#pragma once

#include "send/print_result.hpp"

#include <string>

namespace httpretry::cli {

// Names an option that would help. Empty if there is none.
std::string advice(const SendOptions& options, const EndedCall& ended);

// The policy repeated a request that the server may have executed, and doing so twice may do harm.
// Empty if it did not.
std::string repeat_warning(const EndedCall& ended);

}  // namespace httpretry::cli
