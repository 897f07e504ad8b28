// ServerDelay: the wait that a server asks for. These headers are parsed:
//
//   retry-after-ms, x-ms-retry-after-ms,   milliseconds, digits only
//   x-amz-retry-after
//   retry-after                            "30", "1.5" (seconds), or an HTTP date
//   x-ratelimit-reset, ratelimit-reset,    the same, and "6m0s", "12ms", "1595320702" (epoch),
//   x-ratelimit-reset-*,                   "1595320702000" (epoch in ms),
//   anthropic-ratelimit-*-reset            "2026-11-21T05:04:48Z"; "*" is any text
//   ratelimit                              "burst";r=0;t=30
//                                          limit=2, remaining=0, reset=30
//   grpc-retry-pushback-ms                 milliseconds; negative: do not retry
//
// Parsing is strict: a value that does not have exactly one of these forms ("1e3", "-5", "nan",
// "Zun, 29 Sep") is ignored, and the next source is tried. 0 means now. Numbers may have any
// length; if they are too large they saturate, so that the limits of the policy apply.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/headers.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace httpretry {

// A delay that a server asked for, and its source.
struct HTTPRETRY_API ServerDelay {
  ServerDelay() = default;
  ServerDelay(Duration wait, ServerDelaySource from, std::string_view text);

  // Counted from the arrival of the response, and rounded up to the unit of its source.
  Duration delay{};
  ServerDelaySource source = ServerDelaySource::RetryAfter;
  // At most 64 bytes of the text. It comes from the server, so escape it before printing.
  std::string raw;
  // A negative pushback: the server asks the client not to retry at all.
  bool do_not_retry = false;
  // The delay is a lower bound for the backoff (true for delays in bodies): the larger of the two
  // is used even with Combine::Server.
  bool at_least = false;
};

// Returns the first valid server delay in the order of `sources`. If a header is repeated, or has
// several values ("2, 3"), the longest delay is used. `wall_now` is the time when the response
// arrived. Dates are compared with the Date of the response if that is within a day of `wall_now`,
// so that the wait is right even if a clock is wrong.
//
// The reset headers are used only if `throttled` is true and their "remaining" is 0 or missing,
// because servers send them with every response.
[[nodiscard]] HTTPRETRY_API std::optional<ServerDelay> server_delay(
    const Headers& headers, std::span<const ServerDelaySource> sources, bool throttled,
    WallTime wall_now);

// Parses exactly the three forms of RFC 9110 §5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday,
// 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994". A leap second (":60") becomes the following
// second. A two-digit year is interpreted as at most 50 years after `now`. The day of the week is
// not checked against the date. Dates outside the range of WallTime saturate.
[[nodiscard]] HTTPRETRY_API std::optional<WallTime> parse_http_date(std::string_view text,
                                                                    WallTime now);

// Parses "2026-11-21T05:04:48Z" (RFC 3339). A fraction of the second and an offset ("+02:00") are
// allowed, and the years 1970 to 2199. Returns nullopt for other texts.
[[nodiscard]] HTTPRETRY_API std::optional<WallTime> parse_rfc3339(std::string_view text);

// Returns the time in the first form of parse_http_date. Times outside the years 1 to 9999
// saturate.
[[nodiscard]] HTTPRETRY_API std::string http_date(std::chrono::sys_seconds time);

// Parses "1h30m", "1.5s", "12ms": one or more numbers, each with a unit of h, m, s, ms, us or ns.
// Rounds up to the nanosecond and saturates.
[[nodiscard]] HTTPRETRY_API std::optional<Duration> parse_go_duration(std::string_view text);

}  // namespace httpretry
