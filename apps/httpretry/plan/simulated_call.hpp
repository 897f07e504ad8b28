// Runs calls in virtual time, with a real client and its middlewares. A ManualScheduler is the
// clock, and a ScriptedTransport performs a scenario.
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

inline constexpr int kMostAttempts = 1000;  // per call, because a policy may have no limit

// One or several calls to simulate.
struct Simulation {
  const PolicySet& policies;
  Request request;
  Script script;
  std::function<double()> random;
  WallTime start{};  // the date at which the first call begins
  int calls = 1;     // through one client
  // The time from the start of one call to that of the next; the calls share the script, as they
  // would share a server. Empty: each call begins when the previous one has ended, and replays the
  // script.
  std::optional<Duration> begin_every = {};
  [[nodiscard]] bool shares_script() const { return begin_every.has_value(); }
};

// The state of HedgePolicy::budget when a hedge last used it.
struct HedgeBudgetUse {
  std::int64_t calls = 0;  // in the last ten seconds
  std::int64_t hedges = 0;
  std::int64_t most = 0;
};

struct SimulatedCalls {
  std::vector<Outcome> outcomes;
  std::vector<Duration> begun;  // the start of each call, if the calls share a script
  std::optional<HedgeBudgetUse> hedge_budget;
  std::string stopped;  // where and why a call was stopped before its end, or empty
};

SimulatedCalls simulate(const Simulation& simulation);

// Runs three calls: with the shortest, the mean and the longest waits. If one was stopped before
// its end, sets `stopped` to the reason.
Extremes simulate_extremes(Simulation simulation, std::string& stopped);

// Returns -H, which adds a header to the request. Entries of a policy file may match headers.
Flag header_flag(std::vector<std::string>& headers);

// Returns a request without a body, with the headers of all -H. Throws UsageError for an invalid
// URL, method or header.
Request plain_request(const std::string& method, const std::string& url,
                      const std::vector<std::string>& headers = {});

// Returns the steps for the path of a request.
Script script_for(const Scenario& scenario, const Request& request);

}  // namespace httpretry::cli
