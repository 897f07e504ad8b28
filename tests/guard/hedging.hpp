// Hedged calls in virtual time.
#pragma once

#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/guard/hedge.hpp>

#include <map>
#include <string>

namespace httpretry {

// Sends a hedge after 200 ms, whatever it costs. Four attempts.
inline RetryPolicy hedged_policy() {
  auto policy = steady_policy();
  policy.hedge.emplace();
  policy.hedge->after = std::chrono::milliseconds(200);
  policy.hedge->budget.reset();
  return policy;
}

struct HedgedCalls : Conversation {
  explicit HedgedCalls(RetryPolicy followed = hedged_policy()) : policy(std::move(followed)) {}

  Outcome send(Request request = Request::get("http://x/")) {
    ClientOptions options;
    options.middlewares = {redirect(), retry(policy), hedge()};
    options.scheduler = clock;
    options.transport = network;
    options.observers = {heard};
    options.random = fixed_random(0.5);
    options.max_in_flight = max_in_flight;
    options.max_in_flight_per_origin = max_in_flight_per_origin;
    began = clock->now();
    return Client(options).send(std::move(request));
  }
  // When the sends went out, since the call began.
  [[nodiscard]] std::vector<Duration> sent_at() const {
    std::vector<Duration> times;
    for (const auto& seen : network->requests()) times.push_back(seen.when - began);
    return times;
  }

  RetryPolicy policy;
  int max_in_flight = 0;
  int max_in_flight_per_origin = 0;
  Time began{};
};

using Times = std::vector<Duration>;

}  // namespace httpretry
