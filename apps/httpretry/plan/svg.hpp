// `plan --format svg`: draws the schedule. The same input gives the same bytes.
#pragma once

#include "plan/schedule.hpp"

#include <string>
#include <vector>

namespace httpretry::cli {

// A line in the lower part of the drawing: the attempts of one call in time.
struct Run {
  std::string name;
  const Outcome* outcome;
};

// Draws a row for each attempt, with its duration and a bar for the range of the wait after it.
// Below are the attempts of each run in time, max_elapsed_time if it is near, and the ends of the
// calls. If `schedule` is null, draws only this lower part.
std::string svg(const std::string& title, const RetryPolicy& policy, const Schedule* schedule,
                const std::vector<Run>& runs, const std::vector<std::string>& ends);

// Draws calls that begin at the same time, one below the other. Each attempt is shown from its send
// to its end.
std::string svg_of_calls(const std::string& title, const RetryPolicy& policy,
                         const std::vector<Outcome>& outcomes);

}  // namespace httpretry::cli
