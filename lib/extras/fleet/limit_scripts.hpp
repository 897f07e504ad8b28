// The scripts of shared limits. Each is one atomic step. All keys have one hash tag, so a cluster
// keeps them on one node. Arguments and replies are
// integers: microseconds and thousandths. Only the server's clock counts, so a caller tells and is
// told durations. The server keeps its microseconds since 2023-11-14, for with those since 1970 a
// double has no fraction left.
//
// A key that is missing is as new: after FLUSHALL, or a restart without persistence, limits begin
// anew. Each key expires by itself when it is as new again.
#pragma once

#include "link.hpp"

namespace httpretry::fleet {

// Tokens of a rate, by the generic cell rate algorithm.
//   requests, per, burst  of the policy
//   wanted                how many to take at most
//   given_back            taken before, and not used
//   ahead                 how far in the future a token may be
// Replies: how many were taken; when the first may be used, from now; where none was taken, when to
// ask again. A time that has passed is negative.
extern const Script kTakeTokens;

// How many of the sends of a scope a process may have under way at once.
//   max            of all processes
//   process, used  who asks, and how many it has under way
//   wanted         how many it could use
//   lease          after which a process that says nothing more has none
// Replies: how many it may have, how many processes there are, whether others want more.
extern const Script kHoldSlots;

// How sends have ended, for a circuit breaker.
//   kind                      "ratio", "consecutive" or "share"
//   failure_ratio, min_requests, window, failures, slow_ratio (-1: off), probes, probe_timeout
//   generation                that the votes are of; others do not count
//   all, good, slow           votes
//   leading, trailing         failures in a row before the first success, and since the last
//   probes_good, probes_failed
//   open_for                  if it opens now
//   process, wants_probe      0 or 1
//   name                      for the news
// Keys: of this circuit, and of all circuits that are not closed.
// Replies: 0 closed, 1 open, 2 half-open; how long it stays open; generation; openings in a row;
// all, good, slow within the window, failures in a row, or what these were when it opened; whether
// the probe is this process's.
extern const Script kVote;

// A pause: lasts until the latest end that anybody has told. One key for all.
//   name, duration  of what, and from now
// Replies: how much of it is left.
extern const Script kPause;

// Tokens of a budget, in thousandths.
//   capacity, taken, given  where all that was given comes after all that was taken
//   lifetime                as new after that time without a change
// Replies: what is left.
extern const Script kBudget;

// What retries may be made within a window, in thousandths: the sum of its tenths.
//   window, sum  what came in (calls) and went out (retries) since the last time
// Replies: the sum of the window.
extern const Script kBudgetWindow;

// The send rate of RetryPolicy::adaptive: that of SendRate, for the sends of all processes.
//   ended      attempts since the last time
//   throttled  of them
//   wanted     sends that wait for their turn
// Replies: whether there is a limit; how many of those may go now; where none may, when to ask
// again.
extern const Script kSendRate;

// A circuit is open for a time, whatever its votes are. Keys as those of kVote.
//   duration, name
extern const Script kOpenCircuit;

// As new. Keys: of a rate, slots, a circuit, circuits, pauses.
//   name
extern const Script kForget;

// What all processes should know. Keys: processes, pauses, circuits, salt.
//   process, lease  who asks, and is forgotten after that time
//   salt            of all processes, if there is none yet
// Replies: how many processes there are; the name of each pause and what is left of it; of each
// circuit that is not closed the name, and what kVote replies up to the failures in a row; the salt
// in decimal digits.
extern const Script kNews;

[[nodiscard]] std::vector<const Script*> limit_scripts();

}  // namespace httpretry::fleet
