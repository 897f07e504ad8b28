// `plan --format svg`: the schedule, drawn for a document. The same input gives the same bytes.
#pragma once

#include "plan/schedule.hpp"

#include <string>
#include <vector>

namespace httpretry::cli {

// A line of the lower part: when the attempts of one call begin.
struct Run {
  std::string name;
  const Outcome* outcome;
};

// A bar for the range of each wait, its numbers beside it, and below it the runs in time, with the
// limit of the policy where it is near.
std::string svg(const std::string& title, const RetryPolicy& policy, const Schedule& schedule,
                const std::vector<Run>& runs);

}  // namespace httpretry::cli
