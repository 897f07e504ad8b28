// Prints messages on standard error. The functions are thread-safe.
#pragma once

#include <string>

namespace httpretry::cli {

// Prints a line, which replaces the status line.
void print_message(const std::string& line);

// Shows a status line on a terminal until the next message or status line replaces it. An empty
// line removes it.
void show_status(const std::string& line);

}  // namespace httpretry::cli
