// The types of time that the whole library uses.
//
// A Duration counts nanoseconds. A Time is a point on the monotonic clock of a Scheduler: deadlines
// and waits use it, so a change of the wall clock does no harm. A WallTime is a date: only server
// dates ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT") and reports for people need it. None of
// these types reads a clock; `Scheduler` does, and tests replace it.
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

}  // namespace httpretry
