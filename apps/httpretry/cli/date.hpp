// Parses dates in the formats that people use.
#pragma once

#include <httpretry/http/time.hpp>

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::cli {

// Parses "2026-01-02T03:04:05Z", "2 Jan 2026 03:04", and the formats of HTTP and of `date`. A date
// without a time zone is in GMT, as in curl.
std::optional<std::time_t> date_in(const std::string& text);

// Parses the value of a flag: a date from 1970 to 2199, which every clock can represent. Throws
// UsageError.
WallTime parse_date(const std::string& text, std::string_view flag);

}  // namespace httpretry::cli
