// decide: whether a request is sent again, when, and if not, why not. Pure: the clocks and the
// random number are arguments, and the same arguments give the same decision.
//
// The guards stand in this order, and the first that holds ends the call:
//
//   the outcome is a success or permanent      success, not_retryable, canceled, circuit_open
//   the attempts (or the polls) are used up    attempts_exhausted
//   the body is gone, or part of the answer    not_replayable
//     is already with the user
//   it may have been done, and doing it        unsafe_to_repeat
//     twice may do harm
//   the server asks for too long a wait        server_delay_too_long, and retry_at says when
//   the time is used up                        elapsed_exhausted
//
// One limit is left to the caller: the budget, which is shared between calls. Take from it after
// `decide` said yes and before waiting (budget.hpp); where it says no, `over_budget` is the
// decision.
//
// When may a request be repeated?
//                                   GET HEAD OPTIONS TRACE PUT      POST, PATCH
//                                   DELETE QUERY, or with a key     and others
//   never sent                      yes                             yes
//   refused by the server           yes                             yes
//   maybe sent, or answered 5xx     yes                             with repeat: always
//
// repeat: never allows the first row only.
#pragma once

#include <httpretry/retry/classify.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry {

// The moments that `decide` needs to know.
struct Clocks {
  Time now;
  Time started;            // when the call reached the retry stage
  Time deadline = kNever;  // the caller's
  WallTime wall_now{};     // `now`, on the calendar
};

// The call so far, as its loop counts it. The attempt that has just ended is counted in.
struct AttemptFacts {
  // Attempts that ended in a failure. Pending answers count apart, and so does the one resend on a
  // fresh connection after a stale one.
  int failures = 1;
  int polls = 0;           // pending answers
  bool repeatable = true;  // Request::repeatable()
  bool replayable = true;  // the body can be read from its beginning again
  // Part of the answer is with the user. Not set where the next attempt can resume behind it.
  bool streaming = false;
  bool once_used = false;  // an earlier failure of this call had Classified::once
  // `may_have_executed` held after an earlier attempt of this call. Leave it false for GET and its
  // like, which change nothing.
  bool maybe_executed = false;
  Duration previous{};               // Decision::backoff before this attempt
  std::optional<Duration> own_wait;  // instead of what the policy's backoff gives
};

// Which limit ended the call.
enum class Limit : std::uint8_t {
  None,
  MaxAttempts,
  MaxPolls,
  BackoffAbort,  // the backoff's own `abort`
  MaxElapsedTime,
  Deadline,  // the caller's
  ServerDelayMax,
  Budget,
};

struct Decision {
  bool retry = false;
  Reason reason = Reason::NotRetryable;  // why not; means nothing where `retry` is true
  Duration wait{};     // before the next attempt; what it would have been where there is none
  Duration backoff{};  // our own part of it, before the server was heard
  // What the server asked for, and where. Set also where it did not change the wait.
  std::optional<Duration> server_delay;
  HintSource source = HintSource::RetryAfter;
  // When the server said to come back, where it said so and there is no retry.
  std::optional<WallTime> retry_at;
  bool poll = false;              // the answer was "not yet": no budget is taken
  bool fresh_connection = false;  // the next attempt must not use a pooled connection
  // A final 404, 409 or 412 after an attempt that may have been executed: our own first write may
  // be why.
  bool ambiguous = false;
  // For `limit_text`: the limit, its size (a count or a time), and by how much it would be passed.
  Limit limit = Limit::None;
  int limit_count = 0;
  Duration limit_time{};
  Duration excess{};
};

[[nodiscard]] HTTPRETRY_API Decision decide(const RetryPolicy& policy, const Classified& classified,
                                            const AttemptFacts& facts, const Clocks& clocks,
                                            double unit_random);

// What becomes of a decision to retry that the budget forbids.
[[nodiscard]] HTTPRETRY_API Decision over_budget(const Decision& decision,
                                                 const Classified& classified,
                                                 const AttemptFacts& facts, const Clocks& clocks);

// Where a limit ended the call, which and by how much: "retry-after asks for 2m, 1m more than
// server_delay.max (1m)". Empty otherwise.
[[nodiscard]] HTTPRETRY_API std::string limit_text(const Decision& decision);

// Whether the origin may have done what the request asks for in the attempt that ended so.
[[nodiscard]] HTTPRETRY_API bool may_have_executed(const Classified& classified);

}  // namespace httpretry
