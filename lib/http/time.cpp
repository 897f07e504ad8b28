#include <httpretry/http/time.hpp>

#include <algorithm>
#include <array>

namespace httpretry {

using namespace std::chrono_literals;

std::string to_text(Duration duration) {
  if (duration == kForever) return "none";
  if (duration < 0ns) return "-" + to_text(-std::max(duration, 1ns - kForever));
  std::string text;
  if (duration >= 1h) text += std::to_string(duration / 1h) + "h";
  duration %= 1h;
  if (duration >= 1min) text += std::to_string(duration / 1min) + "m";
  duration %= 1min;
  if (duration == 0ns) return text.empty() ? "0s" : text;

  // What is left is one decimal fraction: "1.5s" behind hours or minutes, otherwise in the largest
  // unit that does not begin with 0.
  const auto [unit, name] = !text.empty() || duration >= 1s ? std::pair(Duration(1s), "s")
                            : duration >= 1ms               ? std::pair(Duration(1ms), "ms")
                            : duration >= 1us               ? std::pair(Duration(1us), "us")
                                                            : std::pair(Duration(1ns), "ns");
  text += std::to_string(duration / unit);
  if (duration % unit != 0ns) {
    // The digits behind the point, as those of a number that begins with 1.
    auto digits = std::to_string((unit + duration % unit).count()).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }
  return text + name;
}

namespace {

struct Unit {
  Duration length;
  const char* name;
};
constexpr std::array kUnits{Unit{1ms, "ms"}, Unit{1s, "s"}, Unit{1min, "min"}};

// How many decimals three digits leave; no more than a nanosecond has.
int decimals_of(Duration duration, Duration unit) {
  int decimals = 2;
  for (auto least = unit; duration < least && decimals < 6; least /= 10) ++decimals;
  for (auto least = 10 * unit; duration >= least && decimals > 0; least *= 10) --decimals;
  return decimals;
}

Duration rounded(Duration duration, Duration unit, int decimals) {
  auto step = unit;
  for (int i = 0; i < decimals; ++i) step /= 10;
  const auto rest = duration % step;
  const bool up = rest >= step - rest && kForever - duration > step;
  return duration - rest + (up ? step : 0ns);
}

std::string digits_text(Duration duration, Duration unit) {
  auto text = std::to_string(duration / unit);
  auto rest = duration % unit;
  const auto decimals = decimals_of(duration, unit);
  if (decimals > 0) text += '.';
  for (int i = 0; i < decimals; ++i) {
    rest *= 10;
    text += static_cast<char>('0' + rest / unit);
    rest %= unit;
  }
  return text;
}

}  // namespace

// Not snprintf: that writes the decimal point of the locale.
std::string duration_text(Duration duration) {
  if (duration == kForever) return "unlimited";
  if (duration == 0ns) return "0 s";
  if (duration < 0ns) return "-" + duration_text(-std::max(duration, 2ns - kForever));
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    const auto [unit, name] = kUnits[i];
    const auto next = kUnits[i + 1].length;
    if (duration >= next) continue;
    const auto shown = rounded(duration, unit, decimals_of(duration, unit));
    if (shown < next) return digits_text(shown, unit) + " " + name;
    duration = next;  // 999.9 ms is "1.00 s"
  }
  const auto [unit, name] = kUnits.back();
  return digits_text(rounded(duration, unit, decimals_of(duration, unit)), unit) + " " + name;
}

}  // namespace httpretry
