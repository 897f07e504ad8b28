// World: the state that the parts of one run share: the clock, the server's random numbers, the
// effects of the current triggers, and the counts.
#pragma once

#include "random.hpp"
#include "recorder.hpp"
#include "virtual_time.hpp"

#include <httpretry/simulate/simulate.hpp>

#include <algorithm>

namespace httpretry::simulation {

// The combined effects on the server of the triggers that are active now.
struct Conditions {
  double capacity = 1;
  const Trigger* failing = nullptr;  // the active trigger with the largest share of failures
};

struct World {
  explicit World(const SimulationOptions& simulation)
      : options(simulation), random(simulation.seed, 0) {}

  // Returns a stream of random numbers. Stream 0 is the server's. Each client has two, one for its
  // arrivals and one for its waits, so that its calls begin at the same times with every policy.
  [[nodiscard]] RandomStream stream(std::uint64_t number) const { return {options.seed, number}; }
  [[nodiscard]] Time now() const { return clock.now(); }

  const SimulationOptions& options;
  VirtualTime clock;
  RandomStream random;
  Recorder recorder;
  Conditions conditions;
};

}  // namespace httpretry::simulation
