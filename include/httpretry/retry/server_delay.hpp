// ServerDelay: how long a server asks us to wait. One parser for every dialect that is in use.
//
//   retry-after-ms, x-ms-retry-after-ms,   milliseconds, digits only
//   x-amz-retry-after
//   retry-after                            seconds, digits only, or an HTTP date
//   x-ratelimit-reset, ratelimit-reset     "30", "1.5" (seconds), "6m0s", "12ms",
//                                          "1595320702" (epoch), "1595320702000" (epoch in ms)
//   ratelimit                              "burst";r=0;t=30
//   grpc-retry-pushback-ms                 milliseconds; negative: do not retry
//
// It is strict: what is not exactly one of these forms is passed over, and the next source is
// asked; nothing is guessed from "1e3", "-5", "nan" or "Zun, 29 Sep". 0 means now. Digits of any
// number are understood; too large saturates, so that the limits of the policy see it.
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
  ServerDelay(Duration wait, HintSource from, std::string_view text);

  // From the moment the answer came; rounded up to the unit of its source.
  Duration delay{};
  HintSource source = HintSource::RetryAfter;
  // As it stood there, cut at 64 bytes. It came from outside: escape it where it is printed.
  std::string raw;
  // A negative pushback: the server asks for no retry at all.
  bool do_not_retry = false;
  // A lower bound for our own wait rather than the wait itself (what bodies say): under
  // Combine::Server, the larger of the two counts.
  bool at_least = false;
};

// The first valid hint, asked in the order of `sources`; of two fields of one name, the first that
// is valid. `wall_now` is when the answer came. Dates are read against the answer's own Date where
// that is within a day of `wall_now`: the wait is then right even if a clock is wrong.
//
// The reset headers are asked only where `throttled` is true, and count only where their
// "remaining" is 0 or left out: servers send them with every answer.
[[nodiscard]] HTTPRETRY_API std::optional<ServerDelay> server_delay(
    const Headers& headers, std::span<const HintSource> sources, bool throttled, WallTime wall_now);

// The three forms of RFC 9110 §5.6.7, to the letter: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday,
// 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994". A leap second (":60") is the second after.
// `now` places the two-digit year: at most 50 years ahead. That the day of the week fits the date
// is not checked: the rest says it all. Dates outside of WallTime's range saturate.
[[nodiscard]] HTTPRETRY_API std::optional<WallTime> parse_http_date(std::string_view text,
                                                                    WallTime now);

// "1h30m", "1.5s", "12ms": one or more numbers, each with a unit of h, m, s, ms, us or ns. Rounded
// up to the nanosecond; saturates.
[[nodiscard]] HTTPRETRY_API std::optional<Duration> parse_go_duration(std::string_view text);

}  // namespace httpretry
