// The chance of whoever was given none.
#pragma once

namespace httpretry {

// Uniform in [0, 1), from a generator of this thread that the system seeded.
double system_random();

}  // namespace httpretry
