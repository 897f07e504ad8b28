// The types of time that the whole library uses.
//
// A Duration counts nanoseconds. A Time is a point on the monotonic clock of a Scheduler: deadlines
// and waits use it, so a change of the wall clock does no harm. A WallTime is a date: only server
// dates ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT") and reports for people need it. None of
// these types reads a clock; `Scheduler` does, and tests replace it.
//
// The limits of time, and where each is set:
//
//   what is limited               set in
//   the whole call                CallOptions::timeout, CallOptions::deadline
//   the call until the headers    the policy's max_elapsed_time. Sending a body is within it;
//     of its last response        the body of the response may take longer
//   an attempt                    the policy's attempt_timeout; timeout() below retry()
//   making a connection           connect_timeout: RequestOptions, policy, TransportOptions
//   the headers of a response     response_timeout: RequestOptions, policy;
//                                 RequestOptions::respond_by
//   a pause within its body       stall_timeout: RequestOptions, policy; not the policy's for an
//                                 event stream (event_stream.hpp)
//   the wait that a server asks   the policy's server_delay.max
//
// If one is set in several places, the smallest counts; but a request's connect_timeout goes before
// the policy's, and this before the transport's. An attempt that still runs at a limit ends with
// Errc::Timeout. A wait that would pass a limit of the call is not begun: the call ends at once
// with the outcome of its last attempt, and with Reason::ElapsedExhausted. `timed_out` is true for
// both.
#pragma once

#include <httpretry/export.hpp>

#include <chrono>
#include <string>

namespace httpretry {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// "No limit". Sums with these saturate in the library: nothing overflows.
inline constexpr Duration kForever = Duration::max();
inline constexpr Time kNever = Time::max();

// `time + wait`, saturating at kNever. `wait` must not be negative.
constexpr Time later(Time time, Duration wait) {
  return kNever - time <= wait ? kNever : time + wait;
}

// A Duration as a policy file writes it, exactly: "1m30s", "250ms", "1.5s"; kForever is "none".
[[nodiscard]] HTTPRETRY_API std::string to_text(Duration duration);

// A Duration for people, with three significant digits: "0.503 ms", "12.3 ms", "1.50 s",
// "2.05 min"; kForever is "unlimited". All messages write times like this.
[[nodiscard]] HTTPRETRY_API std::string duration_text(Duration duration);

}  // namespace httpretry
