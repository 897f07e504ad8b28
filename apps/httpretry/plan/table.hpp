// `plan --format table`.
#pragma once

#include "plan/simulated_call.hpp"

#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string>

namespace httpretry::cli {

// Returns the least, mean and most of each wait over all random draws, the total, and the reason
// why the call ends.
std::string table_of_ranges(const RetryPolicy& policy, const Extremes& calls);

// Returns the attempts and decisions of one call.
std::string table_of_decisions(const Outcome& outcome);

// Returns the attempts of calls that share a script, in the order of their sends, and the calls
// that were refused. The sums and the number of sends in each second follow.
std::string table_of_calls(const SimulatedCalls& simulated);

// Returns "hedge budget: 5 of 5 used by 100 calls in 10 s". Empty if no hedge needed the budget.
std::string hedge_budget_text(const SimulatedCalls& simulated);

}  // namespace httpretry::cli
