// One run: all clients with one policy against the model.
#pragma once

#include <httpretry/simulate/simulate.hpp>

namespace httpretry::simulation {

[[nodiscard]] Result<SimulationRun> run(const SimulationOptions& options,
                                        const SimulatedPolicy& policy);

}  // namespace httpretry::simulation
