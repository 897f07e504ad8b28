#include <httpretry/retry/server_delay.hpp>

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

namespace httpretry {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::string_view kDays[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::string_view kLongDays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                          "Friday", "Saturday", "Sunday"};
constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Date {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

// The take_ functions remove what they read from the front of `text`. They return false if the text
// begins with something different.
bool take_digits(std::string_view& text, std::size_t digit_count, int& value) {
  const auto digits = text.substr(0, digit_count);
  const auto number = to_number<unsigned short>(digits);
  if (!number || digits.size() != digit_count) return false;
  value = *number;
  text.remove_prefix(digit_count);
  return true;
}

// Sets `number` to the position of the name in `names`, counted from 1.
bool take_name(std::string_view& text, std::span<const std::string_view> names, int& number) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!text.starts_with(names[i])) continue;
    text.remove_prefix(names[i].size());
    number = static_cast<int>(i) + 1;
    return true;
  }
  return false;
}

// Reads one field of a date from the front of the text into `date`, and removes it from the text.
// Returns false if the text begins with something different. `field` is the character for that
// field in a format of strptime, such as 'Y' in "%Y-%m-%d". The function strptime itself depends on
// the locale, and HTTP's dates do not.
bool take_field(std::string_view& text, char field, Date& date) {
  int weekday = 0;  // read, but not compared with the date
  switch (field) {
    case 'a': return take_name(text, kDays, weekday);       // "Mon"
    case 'A': return take_name(text, kLongDays, weekday);   // "Monday"
    case 'b': return take_name(text, kMonths, date.month);  // "Jan"
    case 'm': return take_digits(text, 2, date.month);
    case 'd': return take_digits(text, 2, date.day);
    case 'e': return take_digits(text, take(text, ' ') ? 1 : 2, date.day);  // " 6" or "16"
    case 'Y': return take_digits(text, 4, date.year);
    case 'y': return take_digits(text, 2, date.year);  // the caller adds the century
    case 'H': return take_digits(text, 2, date.hour);
    case 'M': return take_digits(text, 2, date.minute);
    case 'S': return take_digits(text, 2, date.second);
  }
  return false;
}

// Reads a date in a format of strptime. Returns nullopt if the text has another format.
std::optional<Date> read_date(std::string_view text, std::string_view format) {
  Date date;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool matches =
        format[i] == '%' ? take_field(text, format[++i], date) : take(text, format[i]);
    if (!matches) return std::nullopt;
  }
  const bool valid = text.empty() && date.hour <= 23 && date.minute <= 59 && date.second <= 60;
  return valid ? std::optional(date) : std::nullopt;
}

// Returns nullopt for a day that does not exist.
std::optional<WallTime> wall_time(const Date& date) {
  const year_month_day day = std::chrono::year(date.year) / date.month / date.day;
  if (!day.ok()) return std::nullopt;
  // WallTime can represent parts of the years 1677 and 2262, and all years between.
  if (date.year < 1678) return WallTime::min();
  if (date.year > 2261) return WallTime::max();
  return WallTime(sys_days(day)) + date.hour * 1h + date.minute * 1min + date.second * 1s;
}

// Returns the year of a date with a two-digit year. RFC 9110 §5.6.7: if the date appears to be more
// than 50 years in the future, the year is the most recent past one with these digits.
int full_year(const Date& date, WallTime now) {
  const year_month_day today(std::chrono::floor<std::chrono::days>(now));
  const auto latest_year = static_cast<int>(today.year()) + 50;
  const auto year = latest_year - (latest_year - date.year) % 100;
  const bool later_in_year = std::chrono::month(static_cast<unsigned>(date.month)) / date.day >
                             today.month() / today.day();
  return year == latest_year && later_in_year ? year - 100 : year;
}

}  // namespace

// Reads the three formats of RFC 9110: the current one, that of RFC 850, and that of asctime().
std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) {
  if (const auto date = read_date(text, "%a, %d %b %Y %H:%M:%S GMT")) return wall_time(*date);
  if (auto date = read_date(text, "%A, %d-%b-%y %H:%M:%S GMT")) {
    date->year = full_year(*date, now);
    return wall_time(*date);
  }
  if (const auto date = read_date(text, "%a %b %e %H:%M:%S %Y")) return wall_time(*date);
  return std::nullopt;
}

// Reads a date such as "2026-11-21T05:04:48.5+02:00": the date and the time, an optional fraction
// of the second, and the zone, which is "Z" (UTC) or an offset from UTC. Returns nullopt if the
// text is malformed or its date does not exist. Rejects years before 1970 and from 2200 on, well
// before WallTime would overflow in 2262.
std::optional<WallTime> parse_rfc3339(std::string_view text) {
  constexpr std::size_t kFrontSize = 19;  // of "2026-11-21T05:04:48"
  if (text.size() <= kFrontSize || std::string_view("Tt ").find(text[10]) == text.npos) return {};
  auto date = read_date(text.substr(0, 10), "%Y-%m-%d");
  const auto clock = read_date(text.substr(11, 8), "%H:%M:%S");
  if (!date || !clock || date->year < 1970 || date->year >= 2200) return std::nullopt;
  date->hour = clock->hour;
  date->minute = clock->minute;
  date->second = clock->second;
  text.remove_prefix(kFrontSize);
  Duration fraction{};
  if (take(text, '.')) {
    if (text.empty() || !is_digit(text.front())) return std::nullopt;
    Duration unit = 100ms;  // the value of the digit: tenths, hundredths, …
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), unit /= 10) {
      fraction += (text.front() - '0') * unit;
    }
  }
  const bool behind_utc = text.starts_with('-');
  std::optional<Date> zone;  // its hour and minute are the offset; nullopt if it is malformed
  if (text == "Z" || text == "z") zone.emplace();
  if (behind_utc || text.starts_with('+')) zone = read_date(text.substr(1), "%H:%M");
  const auto time = wall_time(*date);  // nullopt if the day does not exist
  if (!zone || !time) return std::nullopt;
  // With "+02:00", the text is two hours ahead of UTC, so the offset is subtracted.
  const Duration offset = zone->hour * 1h + zone->minute * 1min;
  return *time + fraction - (behind_utc ? Duration(-offset) : offset);
}

// Returns the date in the current format: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::chrono::sys_seconds time) {
  constexpr std::chrono::sys_seconds kFirst = sys_days(std::chrono::year(1) / 1 / 1);
  constexpr std::chrono::sys_seconds kEnd = sys_days(std::chrono::year(10'000) / 1 / 1);
  time = std::clamp<std::chrono::sys_seconds>(time, kFirst, kEnd - 1s);  // its year has 4 digits
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto* const weekday = kDays[std::chrono::weekday(day).iso_encoding() - 1].data();
  const auto* const month = kMonths[static_cast<unsigned>(date.month()) - 1].data();
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT", weekday,
                static_cast<unsigned>(date.day()), month, static_cast<int>(date.year()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

}  // namespace httpretry
