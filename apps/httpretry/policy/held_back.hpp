// What holds the requests under a policy back, in words.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <string>

namespace httpretry::cli {

// A line for each block but the pause, and who shares its state; and when a second send would go
// out. Empty where there is none.
std::string held_back_text(const ResolvedPolicy& resolved, const Request& request);

}  // namespace httpretry::cli
