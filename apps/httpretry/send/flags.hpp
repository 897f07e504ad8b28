// Functions that the flag tables of sending share.
#pragma once

#include "send/options.hpp"

namespace httpretry::cli {

// Returns the flags for the destination of the response.
std::vector<Flag> file_flags(SendOptions& to);
// Returns the flags for the parts of the response to show.
std::vector<Flag> response_flags(SendOptions& to);
// Returns the flags for messages, reports and telemetry.
std::vector<Flag> message_flags(SendOptions& to);

// Implements -K: applies the options in a file, as curl does. Each line has one option, with or
// without dashes, then "=", ":" or spaces before the value. A value with spaces is in quotes, and
// "#" starts a comment. "-" is standard input. Throws ReadError, and UsageError with the file and
// line.
void read_config(const std::string& path, SendOptions& to);

// Returns the end of a message about an unknown option, "--name" or "-n". For one of curl 7.88 it
// says why it is missing and what to use instead; for a common name of one of our options, it
// suggests that option. Empty for any other.
std::string about_unknown_option(std::string_view option);

}  // namespace httpretry::cli
