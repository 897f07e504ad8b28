// Rules that the middleware `guards` and `guarded` share: the errors of refusals, and the length of
// pauses.
#pragma once

#include "lib/core/guard/detail/limits.hpp"

#include <httpretry/http/attempt.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string_view>

namespace httpretry::guard {

// Returns the error for a send or call that was refused because of the limit in `hold`, for example
// "the circuit of https://api.example.com is open (5 failures in a row)". Most limits let it wait,
// and refuse it only if the wait would end after its deadline ("too late"). A circuit may refuse it
// at once, and the limit of concurrent sends refuses it if its queue is full. `limited` names what
// the limits are for.
[[nodiscard]] Error error_of_refusal(const Hold& hold, std::string_view limited, Time now);

// Returns how long a pause may last that a server asks for.
[[nodiscard]] Duration longest_pause_of(const RetryPolicy& policy);

}  // namespace httpretry::guard
