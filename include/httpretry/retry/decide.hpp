// decide: whether a request is retried, after which wait, and if not, why not. Pure: the clocks and
// the random number are arguments, and the same arguments give the same decision.
//
// It checks in this order, and the first check that holds ends the call:
//
//   the outcome is a success or permanent       success, not_retryable, canceled, circuit_open
//   the attempts (or the polls) are used up     attempts_exhausted
//   the body cannot be read again, or the user  not_replayable
//     has part of the response already
//   it may have been executed, and executing    unsafe_to_repeat
//     it twice may do harm
//   the server asks for too long a wait         server_delay_too_long, and retry_at says when
//   the time is used up                         elapsed_exhausted
//
// The caller checks one more limit, the budget, because calls share it: take from it when `decide`
// has decided to retry, before the wait (budget.hpp). If it refuses, the decision is `over_budget`.
//
// Which requests may be repeated?
//                                   GET HEAD OPTIONS TRACE PUT      POST, PATCH
//                                   DELETE QUERY, or with a key     and others
//   never sent                      yes                             yes
//   refused by the server           yes                             yes
//   maybe sent, or a response 5xx   yes                             with repeat: always
//
// A GET to a URL that a pending response has named (PendingRule::url_from) may always be repeated.
// Else repeat: never allows only the first row, and repeat: refused the first two; there, of
// statuses, only those are refused that say so: 421, 425, and 429 or 503 with a server delay.
#pragma once

#include <httpretry/retry/classify.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry {

// The times that `decide` needs.
struct Clocks {
  Time now;
  Time started;            // when the call reached the middleware `retry`
  Time deadline = kNever;  // the caller's
  WallTime wall_now{};     // `now`, on the calendar
};

// The state of the call, including the attempt that has just ended.
struct RetryState {
  // Attempts that failed. Without pending responses, and without an attempt on a stale connection
  // that was sent again at once.
  int failures = 1;
  int hedges = 0;          // sends besides the attempts, which max_attempts counts, too
  int throttles = 0;       // in a row, up to the last attempt
  int polls = 0;           // pending responses
  bool repeatable = true;  // Request::repeatable()
  bool replayable = true;  // the body can be read from its beginning again
  // The user has part of the response already, and the next attempt cannot resume after it.
  bool streaming = false;
  // A pending response has named the URL to poll: all that follows are GETs, which are safe
  // whatever the request was, and whatever the policy says of `repeat`.
  bool polls_url = false;
  bool once_used = false;  // an earlier failure of this call had Classified::once
  // `may_have_executed` after an earlier attempt of this call. Always false for methods that change
  // nothing, such as GET.
  bool maybe_executed = false;
  Duration previous{};               // Decision::backoff before this attempt
  std::optional<Duration> own_wait;  // instead of the policy's backoff
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
  Once,  // Classified::once
  Budget,
};

struct Decision {
  bool retry = false;
  Reason reason = Reason::NotRetryable;  // why not; without meaning where `retry` is true
  Duration wait{};     // before the next attempt, or before the one that a limit forbids
  Duration backoff{};  // our own part of it, without the server delay
  // The server delay and its source. Also set where it did not change the wait.
  std::optional<Duration> server_delay;
  ServerDelaySource source = ServerDelaySource::RetryAfter;
  // When the server asks us to come back; only where there is no retry.
  std::optional<WallTime> retry_at;
  bool poll = false;              // the response was a pending one: the budget does not count
  bool fresh_connection = false;  // the next attempt must not use a pooled connection
  // A final 404, 409 or 412 after an attempt that may have been executed, which may be the cause.
  bool ambiguous = false;
  // For `limit_text`: the limit, its size (a count or a time), and how far a retry would exceed it.
  Limit limit = Limit::None;
  int limit_count = 0;
  Duration limit_time{};
  Duration excess{};
};

[[nodiscard]] HTTPRETRY_API Decision decide(const RetryPolicy& policy, const Classified& classified,
                                            const RetryState& facts, const Clocks& clocks,
                                            double unit_random);

// Instead of a decision to retry, where the budget forbids it.
[[nodiscard]] HTTPRETRY_API Decision over_budget(const Decision& decision,
                                                 const Classified& classified,
                                                 const RetryState& facts, const Clocks& clocks);

// The limit that ended the call, and by how much: "retry-after asks for 2.00 min, 1.00 min
// more than server_delay.max 1.00 min". Empty where none did.
[[nodiscard]] HTTPRETRY_API std::string limit_text(const Decision& decision);

// Whether the server may execute the request twice: the policy says so, or executing it twice does
// no harm.
[[nodiscard]] HTTPRETRY_API bool may_execute_twice(const RetryPolicy& policy, bool repeatable);

// Whether the server may have executed the request in the attempt with this outcome.
[[nodiscard]] HTTPRETRY_API bool may_have_executed(const Classified& classified);

}  // namespace httpretry
