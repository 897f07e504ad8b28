// The middleware `guards`: holds sends back as the policy of their endpoint says (GuardPolicy):
// pauses that a server asks for, rates, circuit breakers, limits of concurrent sends.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/retry/longest_pause.hpp>

namespace httpretry {

// Below `retry`, so that each attempt asks, and above `timeout`, which then does not count what an
// attempt waits for:
//
//   Client client({redirect(), retry(), hedge(), guards(), timeout(2s)});
//
// It is in the default chain. A policy that sets one of these for a chain without it is an error
// (ClientOptions::middlewares).
//
// Right before a send goes out, one pass asks the pause, the breaker, the rate and the slots, and
// takes all that it needs or nothing. A send that has to wait holds nothing, and is served by
// priority, then in the order of arrival. Waiting counts for max_elapsed_time and for the call's
// deadline, and not for attempt_timeout; Timings::queued tells how long it was.
//
// A send that would wait for too long, or that the breaker refuses, ends at once with one of the
// errors of Error::held_back: nothing was sent, and History::retry_at says when to come back.
//
// Credentials are those that the request has here: a header Authorization or
// RequestOptions::credentials. A token that a `bearer` below adds is not seen.
//
// A request may say how long a pause it waits for: LongestPause.
//
// Its states are those of ClientOptions::shared_state, else its own.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr guards();
// Kept there: a program can read, reset and force them, and several clients can share them.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr guards(std::shared_ptr<SharedState> state);

}  // namespace httpretry
