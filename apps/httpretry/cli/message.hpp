// Messages for people, on standard error. Safe to use on several threads.
#pragma once

#include <string>

namespace httpretry::cli {

// Prints a line.
void print_message(const std::string& line);

// Shows a line on a terminal that the next message or status line replaces. Empty: removes it.
void show_status(const std::string& line);

}  // namespace httpretry::cli
