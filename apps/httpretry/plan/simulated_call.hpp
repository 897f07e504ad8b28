// A scenario as a client meets it, in virtual time: the client and the middlewares that send, with
// a clock that jumps and a network that says what the scenario has.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/testing/testing.hpp>

#include <functional>
#include <string>
#include <vector>

namespace httpretry::cli {

inline constexpr int kMostAttempts = 1000;  // of one call

struct Play {
  const PolicySet& policies;
  Request request;
  Script script;
  std::function<double()> random;
  int calls = 1;  // one after the other, through one client
};

struct Played {
  std::vector<Outcome> outcomes;
  std::string cut_short;  // why, where a call was stopped that would have gone on
};

Played play(const Play& what);

// Over all draws: the call with the shortest waits, with the middle ones, with the longest.
std::vector<Outcome> play_extremes(Play what, std::string& cut_short);

// What a call is planned for: without headers and body. Throws UsageError.
Request plain_request(const std::string& method, const std::string& url);

// The steps for that request's path.
Script script_for(const Scenario& scenario, const Request& request);

}  // namespace httpretry::cli
