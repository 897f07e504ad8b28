// What `plan` shows of the calls that it played: each attempt with the wait behind it.
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
  DelayRange wait;   // zero where none follows
  Duration total{};  // from the beginning to the end of that wait, by the means
};
using Schedule = std::vector<Planned>;

// The range of each wait over all draws. The outcomes are those of the shortest waits, of the
// middle ones and of the longest; the one with the most attempts is listed.
Schedule schedule_of_ranges(const RetryPolicy& policy, const Outcome& shortest,
                            const Outcome& middle, const Outcome& longest);

// The waits of one call, as they came.
Schedule schedule_of(const Outcome& outcome);

// "attempts_exhausted"; a call that was cut off in the plan is "not over".
std::string_view why_ended(const History& history);

// "after attempt 4, at 3.00 s: attempts_exhausted (max_attempts 4 reached)"
std::string ending(const Outcome& outcome);

}  // namespace httpretry::cli
