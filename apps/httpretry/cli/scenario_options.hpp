// --scenario and --outcomes: what happens to the requests of `plan` and `serve`.
#pragma once

#include "cli/args.hpp"

#include <httpretry/testing/testing.hpp>

#include <optional>
#include <string>
#include <vector>

namespace httpretry::cli {

struct ScenarioChoice {
  std::optional<std::string> file;
  std::optional<std::string> outcomes;
};

std::vector<Flag> scenario_flags(ScenarioChoice& choice);

// Returns nullopt if neither flag is given. Throws UsageError for an invalid scenario.
std::optional<Scenario> chosen_scenario(const ScenarioChoice& choice);

// Parses "503,timeout,429:retry-after=7,refused,200". Throws UsageError, which names --outcomes.
Scenario parse_outcomes(const std::string& list);
// Parses the same, but throws std::invalid_argument, which names no option.
std::vector<Step> steps_in(const std::string& list);

}  // namespace httpretry::cli
