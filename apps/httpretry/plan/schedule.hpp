// The schedule that `plan` shows: each attempt with the wait after it.
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
  Duration total{};  // until the end of that wait; with ranges, in the call with the mean waits
};
using Schedule = std::vector<Planned>;

// The same call with the shortest, the mean and the longest waits.
struct Extremes {
  Outcome shortest, mean, longest;
};

// The range of each wait over all random draws. The schedule has the attempts of the longest call.
Schedule schedule_of_ranges(const RetryPolicy& policy, const Extremes& calls);

// The actual waits of one call.
Schedule schedule_of(const Outcome& outcome);

// "attempts_exhausted"; "not finished" for a call that the simulation stopped.
std::string_view stop_reason_text(const History& history);

// "after attempt 4, at 3.00 s: attempts_exhausted (max_attempts 4 reached)"
std::string end_text(const Outcome& outcome);

// A line for the call with the mean waits, and one for each other call that ends in another way.
std::vector<std::string> end_lines(const Extremes& calls);

}  // namespace httpretry::cli
