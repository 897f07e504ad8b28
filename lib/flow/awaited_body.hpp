// What transports need of bodies that pause.
#pragma once

#include "lib/http/checked_reader.hpp"

#include <httpretry/flow/awaited_body.hpp>

namespace httpretry {

// Waits until the reader, which has paused, has more; then continues on the scheduler of the call.
// What the reader throws is an error. An error is permanent.
HTTPRETRY_API Task<Result<void>> wait_for_more(CheckedReader& reader, Call& call);

}  // namespace httpretry
