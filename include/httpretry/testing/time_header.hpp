// TimeHeader: a response header for tests. Its value is a time, given relative to the response.
//
//   Step busy(429);
//   busy.time_headers = {{"Retry-After", 60s}, {"X-RateLimit-Reset", 60s, TimeForm::Epoch}};
//
//   network->say(Response(429), {{"Retry-After", 60s}});  // by the clock of the ManualScheduler
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/headers.hpp>
#include <httpretry/http/time.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry {

// How a time is written. Scenario files call these forms "http-date", "epoch" and "epoch-ms".
enum class TimeForm : std::uint8_t {
  HttpDate,  // "Sun, 06 Nov 1994 08:49:37 GMT"
  Epoch,     // seconds since 1970: "784111777"
  EpochMs,   // milliseconds since 1970: "784111777000"
};

// The time is `offset` after the response is sent; `offset` may be negative. The value is rounded
// up to the unit of its form, so that a wait until that time is never shorter than `offset`. A
// "Date" header is rounded down, for the same reason.
struct HTTPRETRY_API TimeHeader {
  TimeHeader() = default;
  TimeHeader(std::string header, Duration from_now, TimeForm written = TimeForm::HttpDate)
      : name(std::move(header)), offset(from_now), form(written) {}

  // Returns the value in a response that is sent at `now`. Times outside the range of WallTime
  // saturate.
  [[nodiscard]] std::string value(WallTime now) const;

  std::string name;   // of the header
  Duration offset{};  // from the response to the time in the header
  TimeForm form = TimeForm::HttpDate;
};

// Adds `times` to the headers of a response that is sent at `now`. Throws like Headers::add.
HTTPRETRY_API void add_times(Headers& headers, std::span<const TimeHeader> times, WallTime now);

// Returns the offset in "now+60", "now-1.5" (seconds), "now+2m30s" or "now". Returns nullopt if
// `text` has none of these forms, or if the offset is longer than 365 days.
[[nodiscard]] HTTPRETRY_API std::optional<Duration> parse_offset(std::string_view text);

}  // namespace httpretry
