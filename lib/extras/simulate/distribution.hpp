// Draws from a Distribution.
#pragma once

#include "random.hpp"

#include <httpretry/simulate/model.hpp>

namespace httpretry::simulation {

// From zero to a year, so that sums of a few do not overflow.
[[nodiscard]] Duration draw(const Distribution& distribution, RandomStream& random);

// A time of `seconds`, within the same limits.
[[nodiscard]] Duration time_of(double seconds);

}  // namespace httpretry::simulation
