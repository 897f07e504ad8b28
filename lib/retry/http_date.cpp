#include <httpretry/retry/server_delay.hpp>

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr std::array<std::string_view, 7> kDays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::array<std::string_view, 7> kLongDays = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Reads a date from left to right. After the first thing that does not fit, nothing fits.
class DateText {
 public:
  explicit DateText(std::string_view text) : rest_(text) {}

  void literal(std::string_view expected) {
    good_ = good_ && rest_.substr(0, expected.size()) == expected;
    if (good_) rest_.remove_prefix(expected.size());
  }
  // Exactly that many digits.
  int digits(std::size_t count) {
    int value = 0;
    good_ = good_ && rest_.size() >= count;
    for (std::size_t i = 0; good_ && i < count; ++i) {
      good_ = rest_[i] >= '0' && rest_[i] <= '9';
      value = value * 10 + (rest_[i] - '0');
    }
    if (good_) rest_.remove_prefix(count);
    return good_ ? value : 0;
  }
  // The number, from 1, of the name that comes next.
  template <std::size_t Size>
  unsigned name(const std::array<std::string_view, Size>& names) {
    for (unsigned i = 0; good_ && i < Size; ++i) {
      if (rest_.substr(0, names[i].size()) != names[i]) continue;
      rest_.remove_prefix(names[i].size());
      return i + 1;
    }
    good_ = false;
    return 1;
  }
  // asctime pads the day with a space.
  int padded_day() {
    if (rest_.substr(0, 1) != " ") return digits(2);
    literal(" ");
    return digits(1);
  }
  Duration time_of_day() {
    const auto hour = digits(2);
    literal(":");
    const auto minute = digits(2);
    literal(":");
    const auto second = digits(2);
    good_ = good_ && hour <= 23 && minute <= 59 && second <= 60;
    return hour * 1h + minute * 1min + second * 1s;
  }
  [[nodiscard]] bool finished() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

struct Date {
  int year = 0;
  unsigned month = 0;
  int day = 0;
  Duration time{};
};

std::optional<WallTime> wall_time(const Date& date) {
  const year_month_day day(year(date.year), std::chrono::month(date.month),
                           std::chrono::day(static_cast<unsigned>(date.day)));
  if (!day.ok()) return std::nullopt;
  // The years of WallTime are 1677 to 2262.
  if (date.year < 1678) return WallTime::min();
  if (date.year > 2261) return WallTime::max();
  return WallTime(sys_days(day)) + date.time;
}

// RFC 9110: a two-digit year that appears to be more than 50 years in the future is the most recent
// past year with these digits.
int full_year(int two_digits, Date date, WallTime now) {
  const year_month_day today(std::chrono::floor<std::chrono::days>(now));
  const auto this_year = static_cast<int>(today.year());
  const auto month_and_day = [](unsigned month, unsigned day) { return month * 32 + day; };
  date.year = this_year - this_year % 100 + two_digits;
  if (date.year <= this_year - 50) date.year += 100;
  const auto later_in_year =
      month_and_day(date.month, static_cast<unsigned>(date.day)) >
      month_and_day(static_cast<unsigned>(today.month()), static_cast<unsigned>(today.day()));
  const auto ahead = date.year - this_year;
  return ahead > 50 || (ahead == 50 && later_in_year) ? date.year - 100 : date.year;
}

std::optional<WallTime> imf_fixdate(std::string_view value) {
  DateText text(value);
  Date date;
  text.name(kDays);
  text.literal(", ");
  date.day = text.digits(2);
  text.literal(" ");
  date.month = text.name(kMonths);
  text.literal(" ");
  date.year = text.digits(4);
  text.literal(" ");
  date.time = text.time_of_day();
  text.literal(" GMT");
  return text.finished() ? wall_time(date) : std::nullopt;
}

std::optional<WallTime> rfc850_date(std::string_view value, WallTime now) {
  DateText text(value);
  Date date;
  text.name(kLongDays);
  text.literal(", ");
  date.day = text.digits(2);
  text.literal("-");
  date.month = text.name(kMonths);
  text.literal("-");
  const auto two_digits = text.digits(2);
  text.literal(" ");
  date.time = text.time_of_day();
  text.literal(" GMT");
  if (!text.finished()) return std::nullopt;
  date.year = full_year(two_digits, date, now);
  return wall_time(date);
}

std::optional<WallTime> asctime_date(std::string_view value) {
  DateText text(value);
  Date date;
  text.name(kDays);
  text.literal(" ");
  date.month = text.name(kMonths);
  text.literal(" ");
  date.day = text.padded_day();
  text.literal(" ");
  date.time = text.time_of_day();
  text.literal(" ");
  date.year = text.digits(4);
  return text.finished() ? wall_time(date) : std::nullopt;
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) {
  if (const auto date = imf_fixdate(text)) return date;
  if (const auto date = rfc850_date(text, now)) return date;
  return asctime_date(text);
}

}  // namespace httpretry
