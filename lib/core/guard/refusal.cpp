#include "refusal.hpp"

#include <algorithm>
#include <string>

namespace httpretry::guard {

// Returns the error for a send that was refused because of the limit in `hold`, for example "the
// circuit of https://api.example.com is open (5 failures in a row)". `limited` names what the limit
// is for. Most limits let a send wait, and refuse it only if it would wait too long ("too late").
// If it is known when the limit would allow the send, most messages say how long that takes.
Error error_of_refusal(const Hold& hold, std::string_view limited, Time now) {
  const auto of_what = " of " + std::string(limited);
  const bool is_known = hold.until != kNever && hold.until > now;
  const auto in_time = is_known ? " in " + duration_text(hold.until - now) + "," : std::string();
  switch (hold.by) {
    case QueuedBy::Pause:
      return Error(Errc::Paused, "the pause" + of_what + " that the server asked for ends" +
                                     in_time + " too late");
    case QueuedBy::Ramp:  // the slow start after a pause
      return Error(Errc::Paused,
                   "after a pause, the ramp" + of_what + " allows the request too late");
    case QueuedBy::Circuit: {
      if (hold.at_random) {
        return Error(Errc::CircuitOpen,
                     "the circuit breaker" + of_what +
                         " refuses a part of the requests, because too many failed");
      }
      const auto why_open = hold.why.empty() ? "" : " (" + hold.why + ")";
      return Error(Errc::CircuitOpen, "the circuit" + of_what + " is open" + why_open);
    }
    case QueuedBy::Rate:
      return Error(Errc::RateLimited,
                   "the rate" + of_what + " allows the request" + in_time +
                       " too late for max_elapsed_time, max_wait or the deadline");
    case QueuedBy::SharedState:  // limits in a store that other processes share
      return Error(Errc::RateLimited, "the shared limits" + of_what + " were not known in time");
    // Only Concurrency, the limit of sends in flight, is left: its queue is full, or the send has
    // waited in it for too long. Nothing and MaxInFlight refuse no send here.
    default:
      return Error(Errc::QueueFull, "too many sends are waiting for the limit" + of_what +
                                        ", or this one has waited too long");
  }
}

Duration longest_pause_of(const RetryPolicy& policy) {
  const auto longest = std::min(policy.guards.pause.max, policy.server_delay.max_over_own);
  if (policy.server_delay.over_max != ServerDelayPolicy::OverMax::Clamp) return longest;
  return std::min(longest, policy.server_delay.max);
}

}  // namespace httpretry::guard
