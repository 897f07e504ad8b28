// Shared by the tables of the flags of sending.
#pragma once

#include "send/options.hpp"

namespace httpretry::cli {

// Where the response goes.
std::vector<Flag> file_flags(SendOptions& to);
// What of it is shown.
std::vector<Flag> response_flags(SendOptions& to);

// -K: applies the options in a file, as curl does. One per line, with or without dashes; "=", ":"
// or spaces before the value; quotes around a value with spaces; "#" starts a comment. "-" is
// standard input. Throws ReadError, and UsageError with the file and line.
void read_config(const std::string& path, SendOptions& to);

// Returns the end of a message about the option "--name" or "-n" of curl 7.88: why we do not have
// it, and what to use instead. Empty if it is no option of curl's, and no usual word for one of
// ours.
std::string about_unknown_option(std::string_view option);

}  // namespace httpretry::cli
