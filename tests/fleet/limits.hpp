// Shared by the tests of shared limits: policies, and processes that share a server.
#pragma once

#include "redis_server.hpp"
#include "sender.hpp"

#include "lib/extras/fleet/fleet_state.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace httpretry::fleet {

using namespace std::chrono_literals;

// A busy machine is not a server that is away.
inline std::shared_ptr<SharedState> patient(int port, Duration patience, int workers) {
  Link::Options options;
  options.address.host = "127.0.0.1";
  options.address.port = port;
  options.address.workers = workers;
  options.reply_timeout = patience;
  options.connect_timeout = std::max<Duration>(patience, 500ms);
  return std::make_shared<FleetState>(std::move(options));
}

inline std::shared_ptr<SharedState> patient(const RedisServer& server, Duration patience = 5s,
                                            int workers = 1) {
  return patient(server.port(), patience, workers);
}

inline GuardPolicy rate_of(std::int64_t requests, Duration per, std::int64_t burst) {
  GuardPolicy policy;
  policy.rate.emplace();
  policy.rate->requests = requests;
  policy.rate->per = per;
  policy.rate->burst = burst;
  return policy;
}

inline GuardPolicy slots_of(int max) {
  GuardPolicy policy;
  policy.concurrency.emplace();
  policy.concurrency->max = max;
  return policy;
}

inline GuardPolicy breaker_of(int min_requests, Duration open_for) {
  GuardPolicy policy;
  policy.breaker.emplace();
  policy.breaker->min_requests = min_requests;
  policy.breaker->open_for = Backoff::constant(open_for);
  return policy;
}

inline std::vector<std::unique_ptr<Sender>> make_senders(const RedisServer& server,
                                                         const GuardPolicy& policy, int count) {
  std::vector<std::unique_ptr<Sender>> senders;
  for (int index = 0; index < count; ++index) {
    senders.push_back(std::make_unique<Sender>(patient(server), policy));
  }
  return senders;
}

inline BudgetPolicy tokens_of(std::int64_t capacity, std::int64_t cost) {
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Tokens;
  policy.capacity = capacity * 1000;
  policy.retry_cost = cost * 1000;
  return policy;
}

// A call whose first attempt failed asks for a retry.
inline bool may_retry(RetryAccount& account) {
  BudgetClaim claim;
  Classified failed;
  failed.cls = Class::Transient;
  return account.end_attempt(claim, failed, AfterAttempt::Retry, now_is()).allowed;
}

// `times` in order.
inline std::size_t most_in_a_second(const std::vector<Time>& times) {
  std::size_t most = 0;
  for (std::size_t first = 0, last = 0; last < times.size(); ++last) {
    while (times[last] - times[first] >= 1s) ++first;
    most = std::max(most, last - first + 1);
  }
  return most;
}

inline Reply run(const RedisServer& server, std::vector<std::string> words) {
  Link::Options options;
  options.address = server.address();
  options.reply_timeout = 10s;
  Link link(std::move(options));
  return ask(link, std::move(words));
}

}  // namespace httpretry::fleet
