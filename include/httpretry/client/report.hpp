// Reports: a call and its history as JSON for programs, and as one line for people. `httpretry
// --report` prints the first; the second is the last line that `httpretry` writes to standard
// error.
//
//   std::string json = report_json(request, outcome);
//
// All of these keys are always present; a key that does not apply is null. After "stop_reason",
// "fallback": true marks a response of `fallback`. Times are in milliseconds. Enum values are the
// words of `to_string`.
//
//   {"url": …, "method": …,
//    "policy": {"endpoint": …, "name": …, "preset": …, "source": …},
//    "outcome": "response", "status": 200, "error": null,
//    "stop_reason": "success", "retry_at": null,
//    "elapsed_ms": 1312.4, "bytes": 5120, "http_version": "2", "hedges": 0, "hedge_refused": null,
//    "attempts": [
//      {"number": 1, "start_ms": 0.0, "duration_ms": 12.1, "status": 503, "error": null,
//       "class": "throttle", "rule": "status 503", "sent": "answered", "wire_sends": 1,
//       "server_delay_ms": 1000.0, "server_delay_source": "retry-after", "backoff_ms": 731.2,
//       "wait_ms": 1000.0, "budget_left": 495, "decision": "retry", "hedge": null,
//       "outcome": null}, …]}
//
// A "hedge" is {"of": 1, "after_ms": 41.2, "from": "p95 of 1043 samples"}. The "outcome" of an
// attempt is "won" or "lost" if several sends raced; an attempt that lost has the decision "lost".
//
// An "error" is {"kind": "connect", "curl_code": 7, "message": "…", "maybe_sent": false}.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>

#include <string>
#include <string_view>

namespace httpretry {

// Returns one JSON object without a line end, always in valid UTF-8 whatever the server sent.
// "policy" is the policy of the first attempt (Attempt::policy). It is null if there was no
// attempt, or if the request brought its own policy. `virtual_time` adds "virtual": true, for calls
// that were simulated and not sent.
[[nodiscard]] HTTPRETRY_API std::string report_json(const Request& request, const Outcome& outcome,
                                                    bool virtual_time = false);

// Returns one line about the call: "gave up after 4 attempts in 12.3 s: 503 each time
// (attempts_exhausted)", "failed after 1 attempt in 101 ms: 404 (not_retryable)", or "succeeded
// after 2 attempts in 213 ms: 503, 200". It contains Error::message, which may name the URL, only
// if no attempt was made or the request is invalid.
[[nodiscard]] HTTPRETRY_API std::string describe(const Outcome& outcome);

// Returns the result of an attempt: its status or its error ("503", "timeout").
[[nodiscard]] HTTPRETRY_API std::string attempt_text(const Attempt& attempt);

// Returns `text` as a JSON string, including the quotes. Bytes that are not UTF-8 become U+FFFD,
// and control characters are escaped.
[[nodiscard]] HTTPRETRY_API std::string quote_json(std::string_view text);

// Returns a time in the format of reports, "2026-11-21T05:04:48.250Z" (RFC 3339, in UTC).
[[nodiscard]] HTTPRETRY_API std::string rfc3339(WallTime time);

}  // namespace httpretry
