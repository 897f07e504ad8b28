#include "start.hpp"

#include "lib/core/guard/hedge_state.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

static_assert(sizeof(Sketch) <= 2355);  // 2.3 KiB

TEST_CASE("quantiles are within 5 %") {
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  std::lognormal_distribution<double> milliseconds(3, 2);
  Sketch sketch;
  std::vector<double> samples;
  for (int sends = 0; sends < 10'000; ++sends) {
    const auto sample = std::clamp(milliseconds(random), 0.2, 3.5e6);
    samples.push_back(sample);
    sketch.add(Duration(static_cast<std::int64_t>(sample * 1e6)), kStart);
  }
  std::sort(samples.begin(), samples.end());
  for (const double q : {0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    CAPTURE(q);
    const auto exact = samples[static_cast<std::size_t>(q * 9'999)];
    const auto found = static_cast<double>(sketch.quantile(q, kStart)->count()) / 1e6;
    CHECK(std::abs(found - exact) <= 0.051 * exact);
  }
}

TEST_CASE("samples are forgotten after 20 to 30 s") {
  Sketch sketch;
  CHECK_FALSE(sketch.quantile(0.5, kStart));
  sketch.add(1s, kStart);
  sketch.add(10s, kStart + 15s);
  CHECK(sketch.count(kStart + 29s) == 2);
  CHECK(sketch.count(kStart + 30s) == 1);
  CHECK(*sketch.quantile(0.5, kStart + 30s) > 9s);
  CHECK(sketch.count(kStart + 40s) == 0);
  CHECK_FALSE(sketch.quantile(0.5, kStart + 40s));
}

TEST_CASE("what is out of range counts at its end") {
  Sketch sketch;
  sketch.add(0s, kStart);
  CHECK(*sketch.quantile(0, kStart) <= 100us);
  sketch.add(1000h, kStart);
  CHECK(*sketch.quantile(1, kStart) > 55min);
  CHECK(*sketch.quantile(1, kStart) < 1h);
}
