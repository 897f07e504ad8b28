// Where log lines go: to standard error, or to a function of yours.
//
// The library logs what no outcome tells: a policy file that was read again or refused, and calls
// that retry inside of others. The middleware `log` (middleware/builtin.hpp) adds a line for each
// call. Nothing is ever written to standard output.
#pragma once

#include <httpretry/export.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace httpretry {

enum class LogLevel : std::uint8_t { Info, Warning, Error };
// "info", "warning" or "error".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(LogLevel level);

// Takes a line, which has neither a time nor a line break at its end. It may have others in
// between: a list of problems or of headers follows. Called from any thread, from several at once,
// and on a loop, so it must not block. If it throws, the line goes to standard error.
using LogFunction = std::function<void(LogLevel level, std::string_view line)>;

// From now on, all lines of the program go to `function`, except those of a middleware `log` with a
// function of its own. A line that another thread is logging may still reach the old one. An empty
// one stands for standard error, as it is at first:
// "[2026-08-01 12:00:00.123] [info] call 7: GET https://example.com/: 200 in 12.3 ms".
// spdlog_logger (spdlog/spdlog.hpp) makes one for spdlog.
HTTPRETRY_API void log_to(LogFunction function);

// Writes a line where the lines of the program go, for example from a middleware of yours.
HTTPRETRY_API void write_log(LogLevel level, std::string_view line);
// Writes it to `function`; to standard error if that is empty or throws.
HTTPRETRY_API void write_log(const LogFunction& function, LogLevel level, std::string_view line);

}  // namespace httpretry
