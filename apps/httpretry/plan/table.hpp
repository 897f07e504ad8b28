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

}  // namespace httpretry::cli
