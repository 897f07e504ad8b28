// Logs what the library itself has to say.
#pragma once

#include <httpretry/flow/log.hpp>

#include <string>

namespace httpretry {

// To `function`; to the function of `log_to` if it is empty.
HTTPRETRY_API void write_log(const LogFunction& function, LogLevel level, const std::string& line);
HTTPRETRY_API void write_log(LogLevel level, const std::string& line);

}  // namespace httpretry
