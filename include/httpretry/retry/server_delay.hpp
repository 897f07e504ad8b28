// ServerDelay: how long a server asks us to wait. Understands these headers:
//
//   retry-after-ms, x-ms-retry-after-ms,   milliseconds, digits only
//   x-amz-retry-after
//   retry-after                            "30", "1.5" (seconds), or an HTTP date
//   x-ratelimit-reset, ratelimit-reset     the same, and "6m0s", "12ms", "1595320702" (epoch),
//                                          "1595320702000" (epoch in ms)
//   ratelimit                              "burst";r=0;t=30
//                                          limit=2, remaining=0, reset=30
//   grpc-retry-pushback-ms                 milliseconds; negative: do not retry
//
// It is strict: a value that is not exactly one of these forms ("1e3", "-5", "nan", "Zun, 29 Sep")
// is ignored, and the next source is tried. 0 means now. Numbers of any length are understood; too
// large ones saturate, so that the limits of the policy apply to them.
#pragma once

#include <httpretry/http/headers.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace httpretry {

struct HTTPRETRY_API ServerDelay {
  ServerDelay() = default;
  ServerDelay(Duration wait, ServerDelaySource from, std::string_view text);

  // From the arrival of the response; rounded up to the unit of its source.
  Duration delay{};
  ServerDelaySource source = ServerDelaySource::RetryAfter;
  // The text, at most 64 bytes of it. It comes from the server: escape it where it is printed.
  std::string raw;
  // A negative pushback: the server asks not to retry at all.
  bool do_not_retry = false;
  // A lower bound for our own wait (delays in bodies): with Combine::Server too, the larger of the
  // two counts.
  bool at_least = false;
};

// The first valid server delay, in the order of `sources`; of two headers of one name, the longer
// one. `wall_now` is when the response came. Dates are compared with the Date of the response
// where that is within a day of `wall_now`: the wait is then right even if a clock is wrong.
//
// The reset headers are used only where `throttled` is true, and where their "remaining" is 0 or
// missing: servers send them with every response.
[[nodiscard]] HTTPRETRY_API std::optional<ServerDelay> server_delay(
    const Headers& headers, std::span<const ServerDelaySource> sources, bool throttled,
    WallTime wall_now);

// The three forms of RFC 9110 §5.6.7, to the letter: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday,
// 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994". A leap second (":60") is the second after.
// A two-digit year is at most 50 years after `now`. The day of the week is not checked against the
// date. Dates outside the range of WallTime saturate.
[[nodiscard]] HTTPRETRY_API std::optional<WallTime> parse_http_date(std::string_view text,
                                                                    WallTime now);

// The first of these forms.
[[nodiscard]] HTTPRETRY_API std::string http_date(std::chrono::sys_seconds time);

// "1h30m", "1.5s", "12ms": one or more numbers, each with a unit of h, m, s, ms, us or ns. Rounded
// up to the nanosecond; saturates.
[[nodiscard]] HTTPRETRY_API std::optional<Duration> parse_go_duration(std::string_view text);

}  // namespace httpretry
