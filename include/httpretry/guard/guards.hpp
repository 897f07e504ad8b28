// guards: the middleware that holds sends back as required by the policy of their endpoint
// (GuardPolicy): pauses that a server asks for, rates, circuit breakers, limits of concurrent
// sends.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/retry/longest_pause.hpp>

namespace httpretry {

// Returns the middleware. Put it below `retry`, so that each attempt passes it, and above
// `timeout`, which then does not count the waits of an attempt:
//
//   Client client({redirect(), retry(), hedge(), guards(), timeout(2s)});
//
// It is part of the default chain. A policy that sets one of these limits is an error in a chain
// without this middleware (ClientOptions::middlewares).
//
// Just before a send is made, one step checks the pause, the breaker, the rate and the slots, and
// takes everything that the send needs, or nothing. A send that has to wait holds nothing. Waiting
// sends are served by priority, and within a priority in FIFO order, unless
// ConcurrencyPolicy::Queue::order is Lifo. The wait counts toward max_elapsed_time and the call's
// deadline but not toward attempt_timeout; Timings::queued reports it.
//
// A send that would wait for too long, or that the breaker refuses, ends at once with one of the
// errors of Error::held_back. Nothing was sent, and History::retry_at says when to try again.
//
// Credentials are those that the request has at this point of the chain: an Authorization header or
// RequestOptions::credentials. A token that a `bearer` below adds is not considered.
//
// A request can limit how long it waits for a pause: see LongestPause.
//
// The states are kept in ClientOptions::shared_state or, if that is not set, by the middleware.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr guards();
// The same with states in `state`. A program can inspect, reset and force them, and several clients
// can share them.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr guards(std::shared_ptr<SharedState> state);

}  // namespace httpretry
