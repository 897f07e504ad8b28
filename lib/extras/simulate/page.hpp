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

// A complete SVG file, or an element for a page.
enum class Drawing : std::uint8_t { File, Element };
[[nodiscard]] std::string comparison(const SimulationReport& report, Drawing drawing);

// Cuts a text that is too long, and ends it with an ellipsis.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t most_bytes);

}  // namespace httpretry::simulation
