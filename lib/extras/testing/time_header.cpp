#include <httpretry/testing/time_header.hpp>

#include "lib/core/base/saturating.hpp"
#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/retry/server_delay.hpp>

namespace httpretry {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Returns the time `offset` after `now` in the header's form. A Date is rounded down, and any other
// time up, so that the delay that a client computes from both is never too short.
std::string TimeHeader::value(WallTime now) const {
  const WallTime time(saturating::plus(now.time_since_epoch(), offset));
  const bool rounds_down = equal_ignoring_case(name, "Date");
  const auto in_seconds =
      rounds_down ? std::chrono::floor<seconds>(time) : std::chrono::ceil<seconds>(time);
  const auto in_ms =
      rounds_down ? std::chrono::floor<milliseconds>(time) : std::chrono::ceil<milliseconds>(time);
  switch (form) {
    case TimeForm::Epoch: return std::to_string(in_seconds.time_since_epoch().count());
    case TimeForm::EpochMs: return std::to_string(in_ms.time_since_epoch().count());
    case TimeForm::HttpDate: break;
  }
  return http_date(in_seconds);
}

void add_times(Headers& headers, std::span<const TimeHeader> times, WallTime now) {
  for (const auto& time : times) headers.add(time.name, time.value(now));
}

// Parses "now", "now+60", "now-1.5s" or "now+2m"; a number without a unit is in seconds. Returns
// nullopt for any other text.
std::optional<Duration> parse_offset(std::string_view text) {
  constexpr std::string_view kNow = "now";
  if (!text.starts_with(kNow)) return std::nullopt;
  text.remove_prefix(kNow.size());
  if (text.empty()) return Duration(0);
  const char sign = text.front();
  if (sign != '+' && sign != '-') return std::nullopt;
  std::string amount(text.substr(1));
  if (amount.find_first_not_of("0123456789.") == std::string::npos) amount += 's';
  const auto [duration, problem] = policy_file::duration_in(amount);
  if (!problem.empty()) return std::nullopt;
  return sign == '-' ? Duration(-duration) : duration;
}

}  // namespace httpretry
