#include "lib/core/base/saturating.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

using namespace std::chrono_literals;
using httpretry::saturating::Nanoseconds;

TEST_CASE("sums and differences of times end at the lowest and the highest one") {
  using httpretry::saturating::minus;
  using httpretry::saturating::plus;
  constexpr auto kMin = Nanoseconds::min();
  constexpr auto kMax = Nanoseconds::max();
  CHECK(plus(2ns, 3ns) == 5ns);
  CHECK(plus(2ns, -3ns) == -1ns);
  CHECK(plus(kMax - 1ns, 1ns) == kMax);
  CHECK(plus(kMax, 1ns) == kMax);
  CHECK(plus(1ns, kMax) == kMax);
  CHECK(plus(kMin, -1ns) == kMin);
  CHECK(plus(-1ns, kMin) == kMin);
  CHECK(minus(2ns, 3ns) == -1ns);
  CHECK(minus(kMin, 1ns) == kMin);
  CHECK(minus(kMax, -1ns) == kMax);
  CHECK(minus(0ns, kMin) == kMax);
  CHECK(minus(-1ns, kMin) == kMax);
  CHECK(minus(-2ns, kMax) == kMin);
  using Point = std::chrono::time_point<std::chrono::steady_clock, Nanoseconds>;
  CHECK(plus(Point(5ns), 3ns) == Point(8ns));
  CHECK(plus(Point(kMax), 1ns) == Point(kMax));
  CHECK(httpretry::saturating::between(Point(5ns), Point(8ns)) == 3ns);
  CHECK(httpretry::saturating::between(Point(kMin), Point(kMax)) == kMax);
}

TEST_CASE("products of times end at the highest one") {
  using httpretry::saturating::times;
  CHECK(times(3, 5ns) == 15ns);
  CHECK(times(0, Nanoseconds::max()) == 0ns);
  CHECK(times(1, Nanoseconds::max()) == Nanoseconds::max());
  CHECK(times(2, Nanoseconds::max()) == Nanoseconds::max());
  CHECK(times(UINT64_MAX, 0ns) == 0ns);
  CHECK(times(UINT64_MAX, 1ns) == Nanoseconds::max());
}

TEST_CASE("a wait is rounded up to the next multiple of a unit") {
  using httpretry::saturating::round_up;
  CHECK(round_up(-1ns, 10ns) == 0ns);
  CHECK(round_up(0ns, 10ns) == 0ns);
  CHECK(round_up(1ns, 10ns) == 10ns);
  CHECK(round_up(10ns, 10ns) == 10ns);
  CHECK(round_up(11ns, 10ns) == 20ns);
  CHECK(round_up(Nanoseconds::max(), 1h) == Nanoseconds::max());
}
