// -K: a file of options, as curl reads it: one a line, with or without its dashes, "=", ":" or
// spaces before the value, quotes around a value with spaces, "#" before what is for people.
#pragma once

#include "send/send_options.hpp"

#include <string>

namespace httpretry::cli {

// Applies the options of the file ("-": standard input). Throws UsageError with the file and the
// line, and ReadError.
void read_config(const std::string& path, SendOptions& to);

}  // namespace httpretry::cli
