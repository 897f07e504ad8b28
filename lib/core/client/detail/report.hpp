// The members of a report, for code that embeds them in another JSON object.
#pragma once

#include "lib/core/json/detail/json.hpp"

#include <httpretry/client/report.hpp>

namespace httpretry::detail {

// Writes the members. The caller opens and closes the object.
HTTPRETRY_API void write_report(JsonWriter& json, const Request& request, const Outcome& outcome);

}  // namespace httpretry::detail
