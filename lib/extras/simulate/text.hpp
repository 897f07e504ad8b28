// How numbers and options are written in tables, pages and commands.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <string>

namespace httpretry::simulation {

// With so many digits after the point.
[[nodiscard]] std::string number(double value, int digits);
// In groups of three digits: "1 234 567".
[[nodiscard]] std::string grouped(double value);
// "12.3 %"; no nearer to 0 or 100 than is true.
[[nodiscard]] std::string percent(double ratio);
// A time in milliseconds, as duration_text.
[[nodiscard]] std::string milliseconds(double value);

// What was simulated, in a few words each: "queue, 100 servers, …", "open, 1000 calls a second".
[[nodiscard]] std::string describe(const Distribution& distribution);
[[nodiscard]] std::string describe(const ServerModel& model);
[[nodiscard]] std::string describe(const Load& load);
[[nodiscard]] std::string describe(const Trigger& trigger);
[[nodiscard]] std::string describe(const PolicyBounds& bounds);

}  // namespace httpretry::simulation
