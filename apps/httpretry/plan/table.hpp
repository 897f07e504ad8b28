// `plan --format table`.
#pragma once

#include "plan/simulated_call.hpp"

#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string>

namespace httpretry::cli {

// The least, mean and most of each wait over all random draws, the total, and why the call ends.
std::string table_of_ranges(const RetryPolicy& policy, const Extremes& calls);

// The attempts and decisions of one call.
std::string table_of_decisions(const Outcome& outcome);

// The attempts of calls that share a script, in the order in which they are sent, and the calls
// that were refused; then the sums, and how many sends there are in each second.
std::string table_of_calls(const SimulatedCalls& simulated);

// "hedge budget: 5 of 5 used by 100 calls in 10 s"; empty where it was not asked.
std::string hedge_budget_text(const SimulatedCalls& simulated);

}  // namespace httpretry::cli
