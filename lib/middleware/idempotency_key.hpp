#pragma once

#include <httpretry/flow/call.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string>

namespace httpretry {

// The idempotency key that `retry` last sent because a policy asks for one, in the context of the
// call. If the same request comes to `retry` again, resent or redirected, it gets the same key.
struct SentKey {
  Request request;
  std::string value;
  std::string header;       // the header in which the request brought the key; empty if generated
  bool redirected = false;  // the next request with this method is the same one
};

// Gives a POST or PATCH the idempotency key that the policy asks for, if it has none. A request
// with a key is repeatable.
void add_idempotency_key(const RetryPolicy& policy, Request& request, const Call& call);

}  // namespace httpretry
