// hedge: the middleware that sends a slow request a second time and uses the faster response.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>

namespace httpretry {

// Returns the middleware. If an attempt has had no response for the time that the policy sets
// (RetryPolicy::hedge), the middleware sends the same request again while the first send continues.
// It uses the first response that is not a failure. It cancels the other sends, which have ended
// when it returns. They count as sends (max_attempts, History::attempts), but do not count as
// evidence about the server.
//
// It is part of the default chain: below retry() and above guards(). A policy with `hedge` is an
// error in a chain without this middleware (ClientOptions::middlewares).
//
//   Client client({redirect(), retry(policies), hedge(), guards()});
//
// Requests whose policy has no `hedge` pass through unchanged.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr hedge();

}  // namespace httpretry
