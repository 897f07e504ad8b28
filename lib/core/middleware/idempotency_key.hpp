#pragma once

#include <httpretry/chain/call.hpp>
#include <httpretry/http/request.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string>

namespace httpretry {

// The idempotency key that `retry` last sent because a policy asks for one. It is stored in the
// context of the call. If a middleware above resends or redirects the request, `retry` gives it the
// same key.
struct SentKey {
  Request request;
  std::string value;
  std::string header;       // the header in which the user set the key; empty if it was generated
  bool redirected = false;  // the next request with this method is the same one, redirected
};

void add_idempotency_key(const RetryPolicy& policy, Request& request, const Call& call);

}  // namespace httpretry
