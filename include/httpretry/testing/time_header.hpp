// TimeHeader: a header of a response in a test whose value is a time counted from that response.
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

// How the time is written; in a scenario file "http-date", "epoch" and "epoch-ms".
enum class TimeForm : std::uint8_t {
  HttpDate,  // "Sun, 06 Nov 1994 08:49:37 GMT"
  Epoch,     // seconds since 1970: "784111777"
  EpochMs,   // milliseconds since 1970: "784111777000"
};

// The time is that at which the response is sent, plus `offset`, which may be negative. It is
// rounded up to the unit of its form, so that a wait until then is never shorter than `offset`. A
// header "Date" is rounded down, for the same reason.
struct HTTPRETRY_API TimeHeader {
  TimeHeader() = default;
  TimeHeader(std::string header, Duration from_now, TimeForm written = TimeForm::HttpDate)
      : name(std::move(header)), offset(from_now), form(written) {}

  // The value in a response that is sent at `now`. Times outside the range of WallTime saturate.
  [[nodiscard]] std::string value(WallTime now) const;

  std::string name;
  Duration offset{};
  TimeForm form = TimeForm::HttpDate;
};

// Adds them to the headers of a response that is sent at `now`. Throws as Headers::add does.
HTTPRETRY_API void add_times(Headers& headers, std::span<const TimeHeader> times, WallTime now);

// The offset of "now+60", "now-1.5" (seconds), "now+2m30s" or "now". Empty if `text` is none of
// these, or further away than 365 days.
[[nodiscard]] HTTPRETRY_API std::optional<Duration> parse_offset(std::string_view text);

}  // namespace httpretry
