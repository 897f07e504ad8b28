#include "current_attempt.hpp"

#include "lib/retry/error_codes.hpp"

#include <httpretry/flow/scheduler.hpp>

namespace httpretry {

// What went to a sink was judged by its beginning.
Classified CurrentAttempt::judge(const Outcome& outcome) const {
  if (outcome && outcome->delivered > 0 && judged) return *judged;
  return judge_anew(outcome);
}

Classified CurrentAttempt::judge_anew(const Outcome& outcome) const {
  const Observed observed(outcome, call.scheduler().wall_now());
  return classify ? classify(*policy, request, observed) : httpretry::classify(*policy, observed);
}

bool CurrentAttempt::reads_body(int status, const Headers& headers) const {
  // We do not know what a function of the user reads.
  return classify != nullptr || policy::looks_into(policy->retry_on, status, headers);
}

}  // namespace httpretry
