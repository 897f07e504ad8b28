// Formats numbers and options for tables, pages and commands.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <string>
#include <string_view>

namespace httpretry::simulation {

// Returns the number with `digits` decimal places.
[[nodiscard]] std::string number(double value, int digits);
// Returns the number without decimal places, in groups of three digits: "1 234 567".
[[nodiscard]] std::string grouped(double value);
// Returns the count with the word or phrase that fits it, for example "1 call" or "1 234 calls".
[[nodiscard]] std::string counted(const std::string& count, std::string_view one,
                                  std::string_view many);
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
