// Formats numbers and options for tables, pages and commands.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <string>

namespace httpretry::simulation {

// Returns the number with `digits` decimal places.
[[nodiscard]] std::string number(double value, int digits);
// Returns the number without decimal places, in groups of three digits: "1 234 567".
[[nodiscard]] std::string grouped(double value);
// Returns a share such as "12.3 %". Only exact values give "0 %" and "100 %".
[[nodiscard]] std::string percent(double ratio);
// Formats a number of milliseconds with duration_text.
[[nodiscard]] std::string milliseconds(double value);

// These describe the parts of a simulation in a few words, for example "open: 1 000 calls a
// second".
[[nodiscard]] std::string describe(const Distribution& distribution);
[[nodiscard]] std::string describe(const ServerModel& model);
[[nodiscard]] std::string describe(const Load& load);
[[nodiscard]] std::string describe(const Trigger& trigger);
[[nodiscard]] std::string describe(const PolicyBounds& bounds);

}  // namespace httpretry::simulation
