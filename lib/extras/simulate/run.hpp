// One run of a simulation.
#pragma once

#include <httpretry/simulate/simulate.hpp>

namespace httpretry::simulation {

// Runs all clients with one policy against the model. The result has no verdict and bounds yet.
[[nodiscard]] Result<SimulationRun> run(const SimulationOptions& options,
                                        const SimulatedPolicy& policy);

}  // namespace httpretry::simulation
