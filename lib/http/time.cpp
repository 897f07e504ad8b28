#include <httpretry/http/time.hpp>

#include <algorithm>

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

}  // namespace httpretry
