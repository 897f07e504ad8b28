// decide determines whether a request is retried, after which wait, and if not, why not. It is a
// pure function: the clocks and the random number are arguments.
//
// The first of these checks that holds ends the call:
//
//   the outcome is a success or permanent       success, not_retryable, canceled, circuit_open
//   a failure that is worth only one retry      not_retryable
//     (Classified::once) happens again
//   the attempts (or the polls) are used up     attempts_exhausted
//   the body cannot be read again, or the user  not_replayable
//     already has part of the response
//   the request may have been executed, and     unsafe_to_repeat
//     executing it twice may do harm
//   the server asks for too long a wait         server_delay_too_long; retry_at is set
//   the time is used up                         elapsed_exhausted
//
// The caller checks one more limit, the budget, because calls share it. After `decide` has decided
// to retry, and before the wait, the caller takes from the budget (budget.hpp). If the budget
// refuses, the decision is `over_budget`.
//
// Which requests may be repeated?
//                                   GET HEAD OPTIONS TRACE PUT      POST, PATCH
//                                   DELETE QUERY, or with a key     and others
//   never sent                      yes                             yes
//   refused by the server           yes                             yes
//   maybe sent, or a response 5xx   yes                             with repeat: always
//
// A GET to a URL that a pending response has named (PendingRule::url_from) may always be repeated.
// Apart from that, `repeat: never` allows only the first row, and `repeat: refused` the first two.
// With `repeat: refused`, only those statuses count as refused that guarantee it: 421, 425, and 429
// or 503 with a server delay.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/retry/classify.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry {

// The points in time that `decide` uses.
struct Clocks {
  Time now;
  Time started;            // when the call reached the middleware `retry`
  Time deadline = kNever;  // that of the caller
  WallTime wall_now{};     // `now` as a date
};

// The state of the call, including the attempt that has just ended.
struct RetryState {
  // The number of failed attempts. Excludes pending responses, an attempt on a stale connection
  // that was sent again at once, and an attempt that brought a download at least 64 KiB further.
  int failures = 1;
  int hedges = 0;          // sends in addition to the attempts; they count toward max_attempts
  int throttles = 0;       // consecutive ones, up to the last attempt
  int polls = 0;           // the number of pending responses
  bool repeatable = true;  // Request::repeatable()
  bool replayable = true;  // the body can be read again from its beginning
  // The user already has part of the response, and the next attempt cannot resume after it.
  bool streaming = false;
  // A pending response has named the URL to poll. All further requests are GETs, which are safe
  // whatever the request was and whatever `repeat` is.
  bool polls_url = false;
  bool once_used = false;  // an earlier failure of this call had Classified::once
  // `may_have_executed` was true for an earlier attempt of this call. Always false for methods that
  // change nothing, such as GET.
  bool maybe_executed = false;
  Duration previous{};               // Decision::backoff before this attempt
  std::optional<Duration> own_wait;  // used instead of the policy's backoff
};

// The limit that ended the call.
enum class Limit : std::uint8_t {
  None,
  MaxAttempts,
  MaxPolls,
  BackoffAbort,  // the `abort` of the backoff
  MaxElapsedTime,
  Deadline,  // that of the caller
  ServerDelayMax,
  Once,  // Classified::once
  Budget,
};

// The result of `decide`.
struct Decision {
  bool retry = false;                    // false: the call ends
  Reason reason = Reason::NotRetryable;  // why not; meaningless if `retry` is true
  Duration wait{};     // before the next attempt, or before the one that a limit forbids
  Duration backoff{};  // the library's part of it, without the server delay
  // The server delay and its source. Set even if it did not change the wait.
  std::optional<Duration> server_delay;
  ServerDelaySource source = ServerDelaySource::RetryAfter;
  // When the server asks the client to try again. Set only if there is no retry.
  std::optional<WallTime> retry_at;
  bool poll = false;              // the response is pending, so the budget does not apply
  bool fresh_connection = false;  // the next attempt must not use a pooled connection
  // The retry may do harm, but the policy says Repeat::Always.
  bool unsafe = false;
  // A final 404, 409 or 412 after an attempt that may have been executed, and that may be its
  // cause.
  bool ambiguous = false;
  // For `limit_text`: the limit, its value (a count or a time), and by how much a retry would
  // exceed it.
  Limit limit = Limit::None;
  int limit_count = 0;
  Duration limit_time{};
  Duration excess{};
};

// Returns the decision after an attempt. `unit_random` is uniform in [0, 1).
[[nodiscard]] HTTPRETRY_API Decision decide(const RetryPolicy& policy, const Classified& classified,
                                            const RetryState& facts, const Clocks& clocks,
                                            double unit_random);

// Returns the decision that replaces a retry if the budget forbids it.
[[nodiscard]] HTTPRETRY_API Decision over_budget(const Decision& decision,
                                                 const Classified& classified,
                                                 const RetryState& facts, const Clocks& clocks);

// Describes the limit that ended the call, and by how much it would be exceeded: "retry-after asks
// for 2.00 min, 1.00 min more than server_delay.max 1.00 min". Returns an empty string if no limit
// did.
[[nodiscard]] HTTPRETRY_API std::string limit_text(const Decision& decision);

// Returns whether the server may execute the request twice, because the policy allows it or because
// executing it twice does no harm.
[[nodiscard]] HTTPRETRY_API bool may_execute_twice(const RetryPolicy& policy, bool repeatable);

// Returns whether the server may have executed the request in the attempt that failed like this.
[[nodiscard]] HTTPRETRY_API bool may_have_executed(const Classified& classified);

}  // namespace httpretry
