// Runs calls in virtual time: a real client with its middlewares, a ManualScheduler as the clock
// and a ScriptedTransport that performs a scenario.
#pragma once

#include "plan/schedule.hpp"

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::cli {

inline constexpr int kMostAttempts = 1000;  // of one call; a policy may have no limit

struct Simulation {
  const PolicySet& policies;
  Request request;
  Script script;
  std::function<double()> random;
  WallTime start{};  // the date at which the first call begins
  int calls = 1;     // through one client
  // Empty: each call begins when the one before has ended, and replays the script. Else one begins
  // so long after the other, and they share the script, as they would share a server.
  std::optional<Duration> begin_every = {};
  [[nodiscard]] bool shares_script() const { return begin_every.has_value(); }
};

// What there was of HedgePolicy::budget when it was last asked.
struct HedgeBudgetUse {
  std::int64_t calls = 0;  // of the last ten seconds
  std::int64_t hedges = 0;
  std::int64_t most = 0;
};

struct SimulatedCalls {
  std::vector<Outcome> outcomes;
  std::vector<Duration> begun;  // when each call began, where they share a script
  std::optional<HedgeBudgetUse> hedge_budget;
  std::string stopped;  // where and why a call was stopped before its end; or empty
};

SimulatedCalls simulate(const Simulation& simulation);

// Three calls: with the shortest, the mean and the longest waits.
Extremes simulate_extremes(Simulation simulation, std::string& stopped);

// A request without headers and body. Throws UsageError.
Request plain_request(const std::string& method, const std::string& url);

// The steps for the path of that request.
Script script_for(const Scenario& scenario, const Request& request);

}  // namespace httpretry::cli
