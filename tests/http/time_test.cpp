#include <httpretry/http/time.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

// A duration of std::chrono converts to a Duration if nothing is lost, or if it counts in floating
// point.
static_assert(std::is_convertible_v<std::chrono::hours, Duration>);
static_assert(std::is_convertible_v<std::chrono::duration<float, std::milli>, Duration>);
static_assert(!std::is_convertible_v<std::chrono::duration<std::int64_t, std::pico>, Duration>);
static_assert(!std::is_convertible_v<int, Duration>);
static_assert(Duration(1.5s) == 1500ms);

TEST_CASE("durations in floating point are rounded to nanoseconds, and saturate") {
  const std::vector<std::pair<std::chrono::duration<double>, Duration>> rows = {
      {0.0s, 0ns},
      {0.3s, 300ms},
      {-0.3s, -300ms},
      {1e-9s, 1ns},
      {1.4e-9s, 1ns},
      {1.6e-9s, 2ns},
      {-1.6e-9s, -2ns},
      {1e300s, kForever},
      {-1e300s, Duration::min()},
      {std::chrono::duration<double>(std::numeric_limits<double>::infinity()), kForever},
      {std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()), 0ns},
  };
  for (const auto& [text, expected] : rows) {
    const Duration converted = text;
    CHECK(to_text(converted) == to_text(expected));
  }
}

TEST_CASE("durations as a policy file writes them") {
  CHECK(to_text(0ns) == "0s");
  CHECK(to_text(1ns) == "1ns");
  CHECK(to_text(999ns) == "999ns");
  CHECK(to_text(1us) == "1us");
  CHECK(to_text(51200ns) == "51.2us");
  CHECK(to_text(1ms) == "1ms");
  CHECK(to_text(250ms) == "250ms");
  CHECK(to_text(1s - 1ns) == "999.999999ms");
  CHECK(to_text(1s) == "1s");
  CHECK(to_text(1500ms) == "1.5s");
  CHECK(to_text(1min - 1ns) == "59.999999999s");
  CHECK(to_text(1min) == "1m");
  CHECK(to_text(1min + 1ns) == "1m0.000000001s");
  CHECK(to_text(90s) == "1m30s");
  CHECK(to_text(1h - 1s) == "59m59s");
  CHECK(to_text(1h) == "1h");
  CHECK(to_text(1h + 1min) == "1h1m");
  CHECK(to_text(1h + 1ms) == "1h0.001s");
  CHECK(to_text(24h) == "24h");
  CHECK(to_text(kForever) == "none");
  CHECK(to_text(1h + 2min + 3s + 4ns) == "1h2m3.000000004s");
  CHECK(to_text(999us + 999ns) == "999.999us");
  CHECK(to_text(-1ns) == "-1ns");
  CHECK(to_text(-90s) == "-1m30s");
  CHECK(to_text(kForever - 1ns) == "2562047h47m16.854775806s");
  CHECK(to_text(1ns - kForever) == "-2562047h47m16.854775806s");
  CHECK(to_text(Duration::min()) == "-2562047h47m16.854775806s");
}

TEST_CASE("durations for people have three significant digits, in ms, s or min") {
  const std::vector<std::pair<Duration, std::string>> rows = {
      {0ns, "0 s"},
      {1ns, "0.000001 ms"},
      {15ns, "0.000015 ms"},
      {999ns, "0.000999 ms"},
      {1000ns, "0.00100 ms"},
      {9999ns, "0.0100 ms"},
      {9500ns, "0.00950 ms"},
      {10000ns, "0.0100 ms"},
      {51200ns, "0.0512 ms"},
      {95000ns, "0.0950 ms"},
      {99949ns, "0.0999 ms"},
      {99950ns, "0.100 ms"},
      {100000ns, "0.100 ms"},
      {502710ns, "0.503 ms"},
      {999499ns, "0.999 ms"},
      {999500ns, "1.00 ms"},
      {9994us, "9.99 ms"},
      {9995us, "10.0 ms"},
      {43ms, "43.0 ms"},
      {99949us, "99.9 ms"},
      {99950us, "100 ms"},
      {999499us, "999 ms"},
      {999500us, "1.00 s"},
      {1500ms, "1.50 s"},
      {12345ms, "12.3 s"},
      {59949ms, "59.9 s"},
      {59950ms, "1.00 min"},
      {90s, "1.50 min"},
      {740699ms, "12.3 min"},  // rounded once, not to 741 s before
      {24h, "1440 min"},
      {-90s, "-1.50 min"},
      {kForever, "unlimited"},
      {kForever - 1ns, "153722867 min"},
      {Duration::min(), "-153722867 min"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.second);
    CHECK(duration_text(row.first) == row.second);
  }
}
