// The time types of the library, and its time limits.
//
// A Duration counts nanoseconds. A Time is a point on the monotonic clock of a Scheduler. Deadlines
// and waits use it, so a change of the wall clock has no effect on them. A WallTime is a date, used
// only for dates from servers ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT") and in reports. None
// of these types reads a clock. Only a Scheduler does, and tests replace it.
//
// The time limits, and where each is set:
//
//   limit                         set in
//   the whole call                timeout: CallOptions, RequestOptions; CallOptions::deadline
//   the call until the headers    the policy's max_elapsed_time. Sending a body is within it;
//     of its last response        the body of a success may take longer, that of a failure not
//   an attempt                    the policy's attempt_timeout; timeout() below retry()
//   making a connection           connect_timeout: RequestOptions, policy, TransportOptions
//   the headers of a response     response_timeout: RequestOptions, policy;
//                                 RequestOptions::respond_by
//   a pause within its body       stall_timeout: RequestOptions, policy; not the policy's for an
//                                 event stream (event_stream.hpp)
//   a wait requested by a server  the policy's server_delay.max
//
// If a limit is set in several places, the smallest value applies. The exception is
// connect_timeout: that of the request takes precedence over the policy's, and the policy's over
// the transport's. An attempt that is still running at a limit ends with Errc::Timeout, or with the
// response if only the rest of a failure's body is missing. A wait that would pass a limit of the
// call is not begun: the call ends at once, with the outcome of its last attempt and with
// Reason::ElapsedExhausted. `timed_out` is true in both cases.
#pragma once

#include <httpretry/export.hpp>

#include <chrono>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>

namespace httpretry {

// A time span in nanoseconds. Durations of std::chrono convert to it implicitly, even those that
// count in floating point: 250ms, 1.5s, duration<double>(limit). A floating-point value that is out
// of range becomes the nearest Duration, and NaN becomes zero. Sums and differences are durations
// of std::chrono, so write std::min<Duration>(limit, a - b).
class Duration : public std::chrono::nanoseconds {
 public:
  constexpr Duration() : std::chrono::nanoseconds(0) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Duration(std::chrono::nanoseconds time) : std::chrono::nanoseconds(time) {}
  constexpr explicit Duration(rep count) : std::chrono::nanoseconds(count) {}
  // Return no time, and the shortest and the longest duration, as those of std::chrono do.
  static constexpr Duration zero() { return {}; }
  static constexpr Duration min() { return std::chrono::nanoseconds::min(); }
  static constexpr Duration max() { return std::chrono::nanoseconds::max(); }
  // Integral durations convert exactly or not at all.
  template <class Rep, class Period>
  requires std::is_convertible_v<std::chrono::duration<Rep, Period>, std::chrono::nanoseconds>
  constexpr Duration(
      std::chrono::duration<Rep, Period> time)  // NOLINT(google-explicit-constructor)
      : std::chrono::nanoseconds(time) {}
  template <std::floating_point Rep, class Period>
  constexpr Duration(
      std::chrono::duration<Rep, Period> time)  // NOLINT(google-explicit-constructor)
      : std::chrono::nanoseconds(rounded(std::chrono::duration<double, std::nano>(time).count())) {}

 private:
  static constexpr rep rounded(double count) {
    // 2^63, the first double above the largest count.
    constexpr double kEnd = 9223372036854775808.0;
    if (count >= kEnd) return std::numeric_limits<rep>::max();
    if (count < -kEnd) return std::numeric_limits<rep>::min();
    if (count != count) return 0;  // NaN
    using Nanoseconds = std::chrono::duration<double, std::nano>;
    return std::chrono::round<std::chrono::nanoseconds>(Nanoseconds(count)).count();
  }
};
// A time of the steady clock, for deadlines and waits.
using Time = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
// A time of the system clock, for dates such as those in Retry-After.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

// "No limit": `kForever` for durations, and `kNever` for times. The library's sums with these
// constants saturate and never overflow.
inline constexpr Duration kForever = Duration::max();
inline constexpr Time kNever = Time::max();

// Returns `time + wait`, saturating at kNever. `wait` must not be negative.
constexpr Time later(Time time, Duration wait) {
  return kNever - time <= wait ? kNever : time + wait;
}

// Returns the exact value in the format of policy files: "1m30s", "250ms", "1.5s"; "none" for
// kForever.
[[nodiscard]] HTTPRETRY_API std::string to_text(Duration duration);

// Returns the value for people, with three significant digits: "0.503 ms", "12.3 ms", "1.50 s",
// "2.05 min"; "unlimited" for kForever. All messages use this format.
[[nodiscard]] HTTPRETRY_API std::string duration_text(Duration duration);

}  // namespace httpretry
