// The headers with which a policy tells the server about retries.
#pragma once

#include <httpretry/chain/call.hpp>
#include <httpretry/http/request.hpp>

namespace httpretry {

// Adds the headers that the policy of the current attempt names (RetryPolicy::attempt_header and
// deadline_header). Must be called right before the transport sends the request, because the time
// left shrinks with each wait. Does nothing outside the attempts of retry(), and for a request to
// another origin than that of the call. Keeps a header that the request already has.
HTTPRETRY_API void add_attempt_headers(Request& request, const Call& call);

}  // namespace httpretry
