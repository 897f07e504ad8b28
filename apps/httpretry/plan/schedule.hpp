// The schedule that `plan` shows: the attempts with the waits between them.
#pragma once

#include <httpretry/http/response.hpp>
#include <httpretry/retry/backoff.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

struct Planned {
  const Attempt* attempt;
  DelayRange wait;   // zero if no retry follows
  Duration total{};  // until the end of `wait`; for ranges, in the call with the mean waits
};
using Schedule = std::vector<Planned>;

// The same call with the shortest, the mean and the longest waits.
struct Extremes {
  Outcome shortest, mean, longest;
};

// Returns the range of each wait over all random draws, for the attempts of the call with the most
// attempts.
Schedule schedule_of_ranges(const RetryPolicy& policy, const Extremes& calls);

// Returns the actual waits of one call.
Schedule schedule_of(const Outcome& outcome);

// Returns "attempts_exhausted", for example, or "not finished" for a call that the simulation
// stopped.
std::string_view stop_reason_text(const History& history);

// Returns "after attempt 4, at 3.00 s: attempts_exhausted (max_attempts 4 reached)".
std::string end_text(const Outcome& outcome);

// Returns a line for the call with the mean waits, and one for each of the others that ends in
// another way.
std::vector<std::string> end_lines(const Extremes& calls);

}  // namespace httpretry::cli
