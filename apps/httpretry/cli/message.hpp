// Prints messages on standard error. The functions are thread-safe.
#pragma once

#include <string>

namespace httpretry::cli {

// Makes each later message a JSON object, {"time": …, "event": "message", "message": …}, and shows
// no status line any more. For --log-json, whose output is for programs.
void use_json_messages();

// Prints a line, which replaces the status line.
void print_message(const std::string& line);

// Prints a line that is JSON already.
void print_json(const std::string& line);

// Shows a status line on a terminal until the next message or status line replaces it. An empty
// line removes it.
void show_status(const std::string& line);

}  // namespace httpretry::cli
