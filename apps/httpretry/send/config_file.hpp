// -K: reads a file of options, as curl does. One per line, with or without dashes; "=", ":" or
// spaces before the value; quotes around a value with spaces; "#" starts a comment.
#pragma once

#include "send/options.hpp"

#include <string>

namespace httpretry::cli {

// Applies the options in a file; "-" is standard input. Throws ReadError, and UsageError with the
// file and line.
void read_config(const std::string& path, SendOptions& to);

}  // namespace httpretry::cli
