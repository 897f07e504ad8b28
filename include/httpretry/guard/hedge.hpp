// hedge: the middleware that races a send that is slow with a second one.
#pragma once

#include <httpretry/chain/middleware.hpp>

namespace httpretry {

// While an attempt has no response for as long as the policy says (RetryPolicy::hedge), it sends
// the same request again, beside the first. The first response that is no failure is used. The
// other sends are canceled, and have ended when it returns. They count as sends (max_attempts,
// History::attempts), but say nothing about the server.
//
// It is in the default chain: below retry(), and above guards(). A policy with `hedge` for a chain
// without it is an error (ClientOptions::middlewares).
//
//   Client client({redirect(), retry(policies), hedge(), guards()});
//
// Requests whose policy has no `hedge` pass through it.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr hedge();

}  // namespace httpretry
