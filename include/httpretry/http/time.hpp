// Time, as every part of the library speaks of it.
//
// A Duration counts nanoseconds. A Time is a point on the monotonic clock of a Scheduler: deadlines
// and waits are measured on it, so that a change of the wall clock does no harm. A WallTime is what
// a calendar shows: only server dates ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT") and reports
// for people need it. None of these types reads a clock; `Scheduler` does, and tests replace it.
#pragma once

#include <httpretry/export.hpp>

#include <chrono>
#include <string>

namespace httpretry {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// "No limit", where a limit is meant. Sums with these saturate in the library: nothing overflows.
inline constexpr Duration kForever = Duration::max();
inline constexpr Time kNever = Time::max();

// `time + wait`, saturating at kNever. `wait` must not be negative.
constexpr Time later(Time time, Duration wait) {
  return kNever - time <= wait ? kNever : time + wait;
}

// A Duration as a policy file writes it, exactly: "1m30s", "250ms", "1.5s"; kForever is "none".
[[nodiscard]] HTTPRETRY_API std::string to_text(Duration duration);

}  // namespace httpretry
