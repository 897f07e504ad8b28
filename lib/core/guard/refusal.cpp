#include "refusal.hpp"

#include <algorithm>
#include <string>

namespace httpretry::guard {

Error error_of_refusal(const Hold& hold, std::string_view limited, Time now) {
  const auto of_it = " of " + std::string(limited);
  const bool ends = hold.until != kNever && hold.until > now;
  const auto in_time = ends ? " in " + duration_text(hold.until - now) + "," : std::string();
  switch (hold.by) {
    case QueuedBy::Pause:
      return Error(Errc::Paused,
                   "the pause" + of_it + " that the server asked for ends" + in_time + " too late");
    case QueuedBy::Ramp:  // the slow start after a pause
      return Error(Errc::Paused, "after a pause, the turn" + of_it + " comes too late");
    case QueuedBy::Circuit: {
      const auto why_open = hold.why.empty() ? "" : " (" + hold.why + ")";
      return Error(Errc::CircuitOpen, "the circuit" + of_it + " is open" + why_open);
    }
    case QueuedBy::Rate:
      return Error(Errc::RateLimited,
                   "the rate" + of_it + " allows it" + in_time +
                       " too late for max_elapsed_time, max_wait or the deadline");
    case QueuedBy::SharedState:  // limits in a store that other processes share
      return Error(Errc::RateLimited, "the shared limits" + of_it + " were not known in time");
    // Concurrency. The other enumerators, Nothing and MaxInFlight, refuse nothing here.
    default: return Error(Errc::QueueFull, "too many sends wait for the limit" + of_it);
  }
}

Duration longest_pause_of(const RetryPolicy& policy) {
  const auto longest = std::min(policy.guards.pause.max, policy.server_delay.max_over_own);
  if (policy.server_delay.over_max != ServerDelayPolicy::OverMax::Clamp) return longest;
  return std::min(longest, policy.server_delay.max);
}

}  // namespace httpretry::guard
