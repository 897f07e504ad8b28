// Report: a call and its history as JSON, for programs, and as a line, for people. What
// `httpretry --report` and the last line of `httpretry` on standard error say.
//
//   std::string json = report_json(request, outcome);
//
// Every key is always there; what does not apply is null. Times are in milliseconds, the words are
// those of `to_string`.
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
// attempt is "won" or "lost" where several sends raced; what has lost has the decision "lost".
//
// An "error" is {"kind": "connect", "curl_code": 7, "message": "…", "maybe_sent": false}.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>

#include <string>
#include <string_view>

namespace httpretry {

// One object, in UTF-8 whatever the server sent, without a line end. Its policy is that of the
// first attempt (Attempt::policy): null without an attempt, and where the request brought a policy
// of its own. `virtual_time` adds "virtual": true, for what was played and not sent.
[[nodiscard]] HTTPRETRY_API std::string report_json(const Request& request, const Outcome& outcome,
                                                    bool virtual_time = false);

// "gave up after 4 attempts in 12.3 s: 503 each time (attempts_exhausted)", "failed after 1 attempt
// in 101 ms: 404 (not_retryable)", or "succeeded after 2 attempts in 213 ms: 503, 200". The message
// of an Error, with its URL, is not part of it.
[[nodiscard]] HTTPRETRY_API std::string describe(const Outcome& outcome);

// What an attempt came to: "503", "timeout".
[[nodiscard]] HTTPRETRY_API std::string attempt_text(const Attempt& attempt);

// A text as a JSON string, quotes included; bytes that are no UTF-8 become U+FFFD, and control
// characters are escaped.
[[nodiscard]] HTTPRETRY_API std::string quote_json(std::string_view text);

// "2026-11-21T05:04:48.250Z": a time as reports have it (RFC 3339, in UTC).
[[nodiscard]] HTTPRETRY_API std::string rfc3339(WallTime time);

}  // namespace httpretry
