// Sends log lines to an spdlog logger. This is a separate library, the only one that needs spdlog:
// link httpretry::spdlog, or httpretry-spdlog with pkg-config.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/log/log.hpp>

#include <string>

namespace httpretry {

// Returns a function that writes each line, at its level, to the logger that is registered under
// `name`. As long as no logger has that name, lines go to standard error.
//
//   spdlog::set_default_logger(spdlog::stderr_color_mt("my_program"));
//   log_to(spdlog_logger("my_program"));
//
// The program must use the libspdlog that httpretry was built with. With another version, do not
// link this library, and call spdlog from a function of your own:
//
//   log_to([](LogLevel level, std::string_view line) { ... });
[[nodiscard]] HTTPRETRY_API LogFunction spdlog_logger(std::string name);

}  // namespace httpretry
