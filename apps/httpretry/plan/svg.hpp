// `plan --format svg`: a drawing of the schedule. The same input gives the same bytes.
#pragma once

#include "plan/schedule.hpp"

#include <string>
#include <vector>

namespace httpretry::cli {

// A line of the lower part: the attempts of one call in time.
struct Run {
  std::string name;
  const Outcome* outcome;
};

// A row for each attempt: its time, and a bar for the range of the wait after it. Below, the
// attempts of each run in time, max_elapsed_time if it is near, and how the calls end.
// Null for `schedule`: only the runs.
std::string svg(const std::string& title, const RetryPolicy& policy, const Schedule* schedule,
                const std::vector<Run>& runs, const std::vector<std::string>& ends);

// The calls that begin at once, one below the other: each attempt from when it is sent to its end.
std::string svg_of_calls(const std::string& title, const RetryPolicy& policy,
                         const std::vector<Outcome>& outcomes);

}  // namespace httpretry::cli
