// The parts that the HTML page and the SVG drawing share.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <string>

namespace httpretry::simulation {

// Returns whether the server is still in trouble at the end of the run: the verdict is metastable
// or overloaded, or no call succeeded.
[[nodiscard]] bool is_down(const SimulationRun& run);

// Returns a sentence with the best and the worst policies.
[[nodiscard]] std::string headline(const SimulationReport& report);

// Returns the drawing: a complete SVG file if `alone`, otherwise an element for a page.
[[nodiscard]] std::string comparison(const SimulationReport& report, bool alone);

// Cuts a text that is too long, and ends it with an ellipsis.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t most_bytes);

}  // namespace httpretry::simulation
