// `plan` for people.
#pragma once

#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string>

namespace httpretry::cli {

// Each wait's least, mean and most over all draws, the total, and what ends it. The outcomes are
// those of the shortest waits, of the middle ones and of the longest.
std::string table_of_ranges(const RetryPolicy& policy, const Outcome& shortest,
                            const Outcome& middle, const Outcome& longest);

// What happened in one call.
std::string table_of_decisions(const Outcome& outcome);

}  // namespace httpretry::cli
