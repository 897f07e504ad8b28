#pragma once

#include <httpretry/flow/call.hpp>
#include <httpretry/retry/retry_policy.hpp>

namespace httpretry {

// Gives a POST or PATCH the idempotency key that the policy asks for, if it has none. A request
// with a key is repeatable.
void add_idempotency_key(const RetryPolicy& policy, Request& request, const Call& call);

}  // namespace httpretry
