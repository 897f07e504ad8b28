// The headers with which a policy tells the server about retries.
#pragma once

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/http/request.hpp>

namespace httpretry {

namespace detail {
HTTPRETRY_API void add_attempt_headers(Request& request, const Call& call,
                                       const CurrentAttempt& attempt);
}

// Adds the headers that the policy of the current attempt names (RetryPolicy::attempt_header and
// deadline_header). Must be called right before the transport sends the request, because the time
// left shrinks with each wait. Does nothing outside the attempts of retry(), and for a request to
// another origin than that of the call. Keeps a header that the request already has.
inline void add_attempt_headers(Request& request, const Call& call) {
  const auto* const attempt = Call::State::current_attempt(call);
  if (attempt == nullptr) return;
  const auto& policy = *attempt->policy;
  if (policy.attempt_header.empty() && policy.deadline_header.empty()) return;
  detail::add_attempt_headers(request, call, *attempt);
}

}  // namespace httpretry
