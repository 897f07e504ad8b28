// `plan --format table`.
#pragma once

#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string>

namespace httpretry::cli {

// The least, mean and most of each wait over all random draws, the total, and why the call ends.
// The outcomes are those of the calls with the shortest, mean and longest waits.
std::string table_of_ranges(const RetryPolicy& policy, const Outcome& shortest,
                            const Outcome& middle, const Outcome& longest);

// The attempts and decisions of one call.
std::string table_of_decisions(const Outcome& outcome);

// The attempts of calls that begin at once, in the order in which they are sent; then what was not
// sent, and how many sends there are in each second.
std::string table_of_calls(const std::vector<Outcome>& outcomes);

}  // namespace httpretry::cli
