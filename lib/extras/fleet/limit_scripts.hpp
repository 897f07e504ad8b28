// The Lua scripts of shared limits. Redis executes each script as one atomic step. All keys have
// the same hash tag, so a cluster keeps them on one node. Arguments and replies are integers;
// durations are in microseconds.
//
// Only the server's clock counts, so callers send and receive durations, never points in time. The
// scripts count microseconds since 2023-11-14, because those since 1970 leave a double no digits
// for fractions.
//
// A missing key means the initial state. So limits start over after FLUSHALL, or after a restart
// without persistence. Each key expires when its state would be the initial one again.
#pragma once

#include "link.hpp"

namespace httpretry::fleet {

// Takes tokens of a rate, by the generic cell rate algorithm (GCRA).
//   requests, per, burst  the numbers of the policy
//   wanted                the most tokens to take
//   given_back            tokens that were taken before and not used
//   ahead                 how long before its time a token may be taken
// Replies: the number of tokens taken; the time from now until the first may be used, negative if
// it may be used already; if none was taken, the time until the next query.
extern const Script kTakeTokens;

// Reserves tokens of several rates, or of a rate that counts costs, in one step. Uses the key of
// kTakeTokens. There are five arguments for each rate:
//   requests, per, burst  the numbers of the rate
//   wanted                the tokens to reserve
//   given_back            tokens that were reserved before and not used
// Replies: the time from now until all reserved tokens may be used, or 0.
extern const Script kReserveTokens;

// Sets how many sends of a scope a process may have in flight at once.
//   max            the limit for all processes together
//   process, used  the calling process, and its sends in flight
//   wanted         the most sends that it could have in flight
//   lease          a process that sends nothing for this time loses its slots
// Replies: how many sends it may have in flight; the number of processes; 1 if the processes
// together want more than `max`, otherwise 0.
extern const Script kHoldSlots;

// Adds the results of sends to a circuit breaker.
//   kind                      "ratio", "consecutive" or "share"
//   failure_ratio, min_requests, window, failures, slow_ratio, probes, probe_timeout
//                             of the policy; ratios in millionths; a slow_ratio of -1 is off
//   generation                of the votes; they count only if it is the circuit's generation
//   all, good, slow           counts of the votes
//   leading, trailing         failures in a row before the first success, and since the last one
//   probes_good, probes_failed
//   open_for                  how long it stays open if it opens now
//   process, wants_probe      wants_probe is 0 or 1
//   name                      names the circuit in kSnapshot
// Keys: this circuit; all circuits that are not closed.
// Replies: the state (0 closed, 1 open, 2 half-open); how long it stays open; the generation; the
// openings in a row; the counts all, good and slow of the window and the failures in a row, or
// what these were when it opened; 1 if this process may send a probe.
extern const Script kVote;

// Begins or extends a pause, which lasts until the latest end that any process has set. All pauses
// are in one key.
//   name, duration
// Replies: how much of the pause is left.
extern const Script kPause;

// Changes a budget of tokens, in thousandths of a token.
//   capacity, taken, given  `taken` is subtracted before `given` is added
//   lifetime                without a change for this time, the budget is full again
// Replies: the balance.
extern const Script kBudget;

// Changes a budget of kind ratio, in thousandths of a retry. It keeps one sum for each tenth of the
// window.
//   window, change  the change is what calls added minus what retries took
// Replies: the sum of the window.
extern const Script kBudgetWindow;

// Runs the send rate of RetryPolicy::adaptive (SendRate) for the sends of all processes.
//   ended      attempts since the last query
//   throttled  those of them that the server throttled
//   wanted     sends that wait
// Replies: 1 if a rate is in force; how many of the waiting sends may go out now; if none may, the
// time until the next query.
extern const Script kSendRate;

// Opens a circuit for a time, whatever its votes. The keys are those of kVote.
//   duration, name
extern const Script kOpenCircuit;

// Resets all limits of a name. Keys: its rate, slots and circuit; all circuits; all pauses.
//   name
extern const Script kForget;

// Registers the calling process, and returns everything that all processes have to know. Keys:
// processes, pauses, circuits, salt.
//   process, lease  the process counts until the lease ends
//   salt            is stored if there is no salt yet
// Replies: the number of processes; each pause with its name and the time left; each circuit that
// is not closed, with its name and the reply of kVote up to the failures in a row; the salt in
// decimal digits.
extern const Script kSnapshot;

[[nodiscard]] std::vector<const Script*> limit_scripts();

}  // namespace httpretry::fleet
