#include <httpretry/http/time.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace httpretry {

using namespace std::chrono_literals;

namespace {

// The negation of a lower duration would overflow, or be kForever.
constexpr Duration kLowest = 1ns - kForever;

struct Unit {
  Duration length;
  const char* name;
  Duration next;  // the length of the next unit
};
constexpr Unit kUnits[] = {{1ms, "ms", 1s}, {1s, "s", 1min}, {1min, "min", kForever}};

// Returns the number of decimals for three significant digits, but no more than a nanosecond has.
int decimals_of(Duration duration, Duration unit) {
  int decimals = 2;
  for (auto least = unit; duration < least && decimals < 6; least /= 10) ++decimals;
  for (auto least = 10 * unit; duration >= least && decimals > 0; least *= 10) --decimals;
  return decimals;
}

// Rounds to this number of decimals of the unit, and never up to more than kForever.
Duration rounded(Duration duration, Duration unit, int decimals) {
  auto step = unit;
  for (int i = 0; i < decimals; ++i) step /= 10;
  const auto rest = duration % step;
  const bool up = rest >= step - rest && kForever - duration > step;
  return duration - rest + (up ? step : 0ns);
}

// Returns the number of units with three significant digits: "1.50".
std::string number_text(Duration duration, Duration unit) {
  std::array<char, 32> text{};
  const auto number = static_cast<double>(duration.count()) / static_cast<double>(unit.count());
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number,
                                     std::chars_format::fixed, decimals_of(duration, unit))
                           .ptr};
}

}  // namespace

// Returns a duration as a policy file has it: "1h30m", "1m1.5s", "250ms", "0s", "-2s". Returns
// "none" for kForever, which stands for no limit.
std::string to_text(Duration duration) {
  if (duration == kForever) return "none";
  // kLowest is the lowest duration whose negation neither overflows nor is kForever.
  if (duration < 0ns) return "-" + to_text(-std::max(duration, kLowest));
  std::string text;
  if (duration >= 1h) text += std::to_string(duration / 1h) + "h";
  duration %= 1h;
  if (duration >= 1min) text += std::to_string(duration / 1min) + "m";
  duration %= 1min;
  if (duration == 0ns) return text.empty() ? "0s" : text;

  // The rest is less than a minute and is written as one decimal number: in seconds after hours or
  // minutes ("1h0.5s"), otherwise in the largest unit in which it is at least 1 ("500ms").
  const auto [unit, name] = !text.empty() || duration >= 1s ? std::pair(Duration(1s), "s")
                            : duration >= 1ms               ? std::pair(Duration(1ms), "ms")
                            : duration >= 1us               ? std::pair(Duration(1us), "us")
                                                            : std::pair(Duration(1ns), "ns");
  text += std::to_string(duration / unit);
  if (duration % unit != 0ns) {
    // Adding one unit, and then removing its "1", keeps the leading zeros of the decimals. For 5 ms
    // in seconds, "1005000000" (ns) becomes "005000000", and "005" without the zeros at its end.
    auto decimals = std::to_string((unit + duration % unit).count()).substr(1);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text += "." + decimals;
  }
  return text + name;
}

// Returns a duration for people, with three significant digits: "1.50 s". Does not use snprintf,
// which writes the locale's decimal point.
std::string duration_text(Duration duration) {
  if (duration == kForever) return "unlimited";
  if (duration == 0ns) return "0 s";
  if (duration < 0ns) return "-" + duration_text(-std::max(duration, kLowest));
  for (const auto& [unit, name, next] : kUnits) {
    if (duration >= next) continue;
    const auto shown = rounded(duration, unit, decimals_of(duration, unit));
    if (shown < next) return number_text(shown, unit) + " " + name;
    duration = next;  // rounding has reached the next unit: 999.9 ms is "1.00 s"
  }
  return {};  // not reached, because the last unit has no next one
}

}  // namespace httpretry
