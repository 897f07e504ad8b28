#include "distribution.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::simulation {
namespace {

constexpr Duration kMost = std::chrono::hours(24 * 365);

// Chooses a part at random, by weight, and draws from it.
Duration draw_part(const Distribution& distribution, RandomStream& random) {
  double total = 0;
  for (const auto& part : distribution.parts) total += part.weight;
  double remaining = random.uniform() * total;
  for (const auto& part : distribution.parts) {
    remaining -= part.weight;
    if (remaining < 0) return draw(part.of, random);
  }
  return draw(distribution.parts.back().of, random);  // reached only by rounding
}

Duration draw_value(const Distribution& distribution, RandomStream& random) {
  const auto& values = distribution.values;
  const auto index =
      static_cast<std::size_t>(random.uniform() * static_cast<double>(values.size()));
  return values[std::min(index, values.size() - 1)];
}

}  // namespace

Duration time_of(double value) {
  if (!(value > 0)) return Duration::zero();
  if (value >= seconds(kMost)) return kMost;
  return Duration(std::chrono::duration<double>(value));
}

// Returns a random duration from the distribution. A negative one counts as positive.
Duration draw(const Distribution& distribution, RandomStream& random) {
  using Kind = Distribution::Kind;
  const double mean = seconds(distribution.mean);
  switch (distribution.kind) {
    case Kind::Constant: return distribution.mean;
    case Kind::Exponential: return time_of(mean * random.exponential());
    case Kind::Normal:
      return time_of(std::abs(mean + seconds(distribution.deviation) * random.normal()));
    case Kind::Lognormal: return time_of(mean * std::exp(distribution.sigma * random.normal()));
    case Kind::Mix: return draw_part(distribution, random);
    case Kind::Empirical: return draw_value(distribution, random);
  }
  return Duration::zero();
}

}  // namespace httpretry::simulation
