// World: what the parts of one run share: the clock, the server's random numbers, what triggers do
// now, and the counts.
#pragma once

#include "random.hpp"
#include "recorder.hpp"
#include "virtual_time.hpp"

#include <httpretry/simulate/simulate.hpp>

#include <algorithm>

namespace httpretry::simulation {

// What the triggers that are on do together.
struct Conditions {
  double capacity = 1;
  double load = 1;
  const Trigger* failing = nullptr;  // the one with the largest share of failures
};

struct World {
  explicit World(const SimulationOptions& simulation)
      : options(simulation), random(simulation.seed, 0) {}

  // Streams of random numbers: 0 is the server's, then two for each client: its calls are the same
  // whatever its policy draws.
  [[nodiscard]] RandomStream stream(std::uint64_t number) const { return {options.seed, number}; }
  [[nodiscard]] Time now() const { return clock.now(); }

  const SimulationOptions& options;
  VirtualTime clock;
  RandomStream random;
  Recorder recorder;
  Conditions conditions;
};

}  // namespace httpretry::simulation
