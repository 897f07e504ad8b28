// Log lines to a logger of spdlog. In a library of its own, which is the only one that needs
// spdlog: link httpretry::spdlog, or httpretry-spdlog of pkg-config.
#pragma once

#include <httpretry/log/log.hpp>

#include <string>

namespace httpretry {

//   spdlog::set_default_logger(spdlog::stderr_color_mt("my_program"));
//   log_to(spdlog_logger("my_program"));
//
// The lines go to the logger that is registered under this name, at its level; as long as there is
// none, to standard error. The program must use the libspdlog that httpretry was built with. With
// another version, leave this library out and call it in a function of your own:
//
//   log_to([](LogLevel level, std::string_view line) { ... });
[[nodiscard]] HTTPRETRY_API LogFunction spdlog_logger(std::string name);

}  // namespace httpretry
