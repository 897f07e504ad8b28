// What the page and the drawing share.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <string>

namespace httpretry::simulation {

// Most calls fail for good, or did not get better.
[[nodiscard]] bool is_down(const SimulationRun& run);

// Which policy does best, and how the worst does.
[[nodiscard]] std::string headline(const SimulationReport& report);

// The drawing; `alone` as a file, else as a part of a page.
[[nodiscard]] std::string comparison(const SimulationReport& report, bool alone);

// With an ellipsis where it is cut.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t most_bytes);

}  // namespace httpretry::simulation
