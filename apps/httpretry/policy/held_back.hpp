// Describes the guards, the concurrent budget and the hedge of a policy in words.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <string>

namespace httpretry::cli {

// Returns a line for each guard except the pause, for the budget and for the hedge, with the scope
// that shares its state. Empty if the policy has none of these.
std::string held_back_text(const ResolvedPolicy& resolved, const Request& request);

}  // namespace httpretry::cli
