// Random draws from a Distribution.
#pragma once

#include "random.hpp"

#include <httpretry/simulate/model.hpp>

namespace httpretry::simulation {

// Returns a random duration from zero to one year. The limit keeps sums of a few of them from
// overflowing.
[[nodiscard]] Duration draw(const Distribution& distribution, RandomStream& random);

// Converts seconds to a duration within the same limits, and a duration to seconds.
[[nodiscard]] Duration time_of(double seconds);
inline double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace httpretry::simulation
