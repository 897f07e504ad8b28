// What no single value of a policy can be blamed for.
#pragma once

#include "lib/policy/layers.hpp"

namespace httpretry::policy_file {

// Contradictions are errors, what can never matter is a warning. They are told at a key of
// `policy`, the topmost layer, where one of its keys has a part in it.
void check_policy(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                  Problems& problems);

}  // namespace httpretry::policy_file
