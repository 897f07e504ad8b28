// The destination of log lines: standard error, or a function.
//
// The library logs only what no outcome reports: a policy file that was reloaded or rejected, and
// calls that retry inside other calls that retry. The middleware `log` (middleware/builtin.hpp)
// adds a line for each call. The library never writes to standard output.
#pragma once

#include <httpretry/export.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace httpretry {

// The severity of a log line.
enum class LogLevel : std::uint8_t { Info, Warning, Error };
// Returns "info", "warning" or "error".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(LogLevel level);

// Receives a line, without the time and without a line break at its end. There may be line breaks
// within it, before a list of problems or headers. The function is called from any thread, from
// several at once, and on a loop, so it must not block. If it throws, the line goes to standard
// error.
using LogFunction = std::function<void(LogLevel level, std::string_view line)>;

// Directs all lines of the program to `function`, except those of a middleware `log` that has its
// own function. A line that another thread is logging may still reach the previous function. An
// empty function restores the initial destination, standard error:
// "[2026-08-01 12:00:00.123] [info] call 7: GET https://example.com/: 200 in 12.3 ms".
// spdlog_logger (spdlog/spdlog.hpp) returns a function for spdlog.
HTTPRETRY_API void log_to(LogFunction function);

// Logs a line to the current destination, for example from a custom middleware.
HTTPRETRY_API void write_log(LogLevel level, std::string_view line);
// Logs a line to `function`, or to standard error if that is empty or throws.
HTTPRETRY_API void write_log(const LogFunction& function, LogLevel level, std::string_view line);

}  // namespace httpretry
