// -z: asks for a response only if it is newer than a date, or than a file.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace httpretry::cli {

// The header for the value of -z: a date, or the name of a file whose time counts; "-" before it
// asks for what is older. Empty if it is neither.
std::optional<std::pair<std::string, std::string>> time_condition(const std::string& value);

}  // namespace httpretry::cli
