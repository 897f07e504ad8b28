// The members of a report, for those who write it as part of something else.
#pragma once

#include "lib/core/json/detail/json.hpp"

#include <httpretry/client/report.hpp>

namespace httpretry {

// Between begin_object and end_object of `json`.
HTTPRETRY_API void write_report(JsonWriter& json, const Request& request, const Outcome& outcome);

}  // namespace httpretry
