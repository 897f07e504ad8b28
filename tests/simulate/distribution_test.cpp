#include "lib/extras/simulate/distribution.hpp"

#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;
using simulation::draw;
using simulation::RandomStream;

namespace {

constexpr int kDraws = 100'000;

// `text`: as in the key "service" of a model.
Distribution distribution_of(const std::string& text) {
  const auto json = text.starts_with('{') ? text : '"' + text + '"';
  return model_of(R"({"kind": "queue", "service": )" + json + "}").service;
}

struct Draws {
  explicit Draws(const Distribution& distribution) {
    RandomStream random(1, 2);
    for (int i = 0; i < kDraws; ++i) {
      ms.push_back(std::chrono::duration<double, std::milli>(draw(distribution, random)).count());
      mean.add(ms.back());
    }
    std::sort(ms.begin(), ms.end());
  }
  [[nodiscard]] double deviation() const { return mean.error() * std::sqrt(kDraws - 1.0); }
  [[nodiscard]] double quantile(double share) const {
    return ms[static_cast<std::size_t>(share * kDraws)];
  }
  std::vector<double> ms;  // in their order
  Mean mean;
};

}  // namespace

TEST_CASE(
    "each kind of distribution has the mean, the deviation and the quantiles of its formula") {
  struct Case {
    const char* text;
    double mean, deviation, median, q95;
  };
  // normal: the absolute value hardly matters for (10,2); for (0,5) it is the half-normal one.
  const Case cases[] = {
      {"10ms", 10, 0, 10, 10},
      {R"({"kind": "constant", "value": "10ms"})", 10, 0, 10, 10},
      {"exponential(10ms)", 10, 10, 6.931, 29.957},
      {R"({"kind": "exponential", "mean": "10ms"})", 10, 10, 6.931, 29.957},
      {"normal(10ms,2ms)", 10, 2, 10, 13.290},
      {R"({"kind": "normal", "mean": "10ms", "deviation": "2ms"})", 10, 2, 10, 13.290},
      {"normal(0s,5ms)", 3.989, 3.014, 3.372, 9.800},
      {"lognormal(20ms,0.8)", 27.543, 26.061, 20, 74.563},
      {R"({"kind": "lognormal", "median": "20ms", "sigma": 0.8})", 27.543, 26.061, 20, 74.563},
      {R"({"kind": "mix", "parts": [{"weight": 3, "of": "10ms"}, {"of": "30ms"}]})", 15, 8.660, 10,
       30},
      {R"({"kind": "empirical", "values": ["1ms", "2ms", "2ms", "7ms"]})", 3, 2.345, 2, 7},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    const Draws draws(distribution_of(each.text));
    // Five standard errors of a mean; the other figures are held to 3 %.
    CHECK(std::abs(draws.mean.value() - each.mean) <=
          5 * each.deviation / std::sqrt(kDraws) + 1e-3);
    CHECK(std::abs(draws.deviation() - each.deviation) <= 0.03 * each.deviation + 1e-9);
    CHECK(draws.quantile(0.5) == doctest::Approx(each.median).epsilon(0.03));
    CHECK(draws.quantile(0.95) == doctest::Approx(each.q95).epsilon(0.03));
    CHECK(draws.ms.front() >= 0);
  }
}

TEST_CASE("parts of a mix are distributions again, and a weight of 0 is never drawn") {
  const Draws draws(distribution_of(R"j({"kind": "mix", "parts": [
      {"weight": 0, "of": "1h"},
      {"weight": 0.5, "of": {"kind": "empirical", "values": ["10ms"]}},
      {"weight": 0.5, "of": "normal(20ms,0s)"},
      {"weight": 0, "of": "1h"}]})j"));
  CHECK(draws.ms.front() == 10);
  CHECK(draws.ms.back() == 20);
  CHECK(std::abs(draws.mean.value() - 15) < 0.1);
}

TEST_CASE("times stay between zero and a year, whatever is drawn") {
  using simulation::time_of;
  CHECK(time_of(-1) == 0s);
  CHECK(time_of(0) == 0s);
  CHECK(time_of(std::nan("")) == 0s);
  CHECK(time_of(0.25) == 250ms);
  CHECK(time_of(1e300) == 365 * 24h);
  const Draws wide(distribution_of("lognormal(8760h,100)"));
  CHECK(wide.ms.back() <= 365.0 * 24 * 3600 * 1000);
}

TEST_CASE("the random numbers of a stream are the same everywhere") {
  RandomStream random(1, 2);
  CHECK(random.uniform() == 0x1.942dd63bacdfcp-1);
  CHECK(random.uniform() == 0x1.12afa17d40a18p-4);
  RandomStream other(7, 0);
  CHECK(other.uniform() == 0x1.2259cf979c904p-2);
  CHECK(other.uniform() == 0x1.f7624f79be586p-1);
  CHECK(RandomStream(1, 2).exponential() == doctest::Approx(1.5578526458151627).epsilon(1e-12));
  CHECK(RandomStream(1, 2).normal() == doctest::Approx(1.6107435921815243).epsilon(1e-12));
}

TEST_CASE("streams of random numbers differ by seed and by number, and begin anew from both") {
  const auto first = [](std::uint64_t seed, std::uint64_t stream) {
    return RandomStream(seed, stream).uniform();
  };
  CHECK(first(1, 1) == first(1, 1));
  std::vector<double> seen;
  for (std::uint64_t i = 0; i < 50; ++i) {
    for (std::uint64_t j = 0; j < 50; ++j) seen.push_back(first(i, j));
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  CHECK(seen.front() >= 0);
  CHECK(seen.back() < 1);
  // Neighbours are not related: their first numbers are spread evenly.
  for (int tenth = 0; tenth < 10; ++tenth) {
    const auto below = std::lower_bound(seen.begin(), seen.end(), 0.1 * (tenth + 1));
    CHECK(std::abs(static_cast<double>(below - seen.begin()) - 250 * (tenth + 1)) < 5 * 25);
  }
}
