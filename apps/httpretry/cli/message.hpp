// Prints messages on standard error. The functions are thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace httpretry::cli {

// Makes each later message a JSON object, {"time": …, "event": "message", "message": …}, and shows
// no status line any more. For --log-json, whose output is for programs.
void use_json_messages();

// Prints a line, which replaces the status line.
void print_message(const std::string& line);

// Prints a line that is JSON already.
void print_json(const std::string& line);

// Shows a status line on a terminal until the next message or status line replaces it. Cuts it off
// if the terminal is too narrow. An empty line removes it.
void show_status(const std::string& line);

// Returns how many characters of a status line fit on the terminal now, or 0 if that is unknown.
std::size_t status_width();

// Returns how many columns a text in UTF-8 takes.
std::size_t columns_of(std::string_view text);

// StatusPause removes the status line while it exists, so that other output can be written. Then it
// shows the latest line again.
class StatusPause {
 public:
  StatusPause();
  ~StatusPause();
  StatusPause(const StatusPause&) = delete;
  StatusPause& operator=(const StatusPause&) = delete;
};

}  // namespace httpretry::cli
