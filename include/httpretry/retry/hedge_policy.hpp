// HedgePolicy: when a request goes out a second time because the first send is slow, as in a policy
// file. Data only.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

#include <optional>
#include <string>
#include <vector>

namespace httpretry {

struct HTTPRETRY_API HedgePolicy {
  HedgePolicy() = default;
  friend bool operator==(const HedgePolicy&, const HedgePolicy&) = default;

  // How long a send may have no response before the next one goes out beside it: a time, or where
  // `quantile` is set, that quantile of the times to the headers in the last 30 seconds.
  Duration after = std::chrono::milliseconds(100);
  double quantile = 0;  // 0.95: as long as 95 % of the responses take; 0: `after` counts
  // For a quantile:
  std::optional<Duration> initial;  // while there are fewer samples; empty: nothing is sent then
  int min_samples = 50;
  Duration min = std::chrono::milliseconds(2);
  Duration max = std::chrono::seconds(5);  // a larger quantile sends nothing

  int max_hedges = 1;  // for each attempt
  // Empty: all methods.
  std::vector<std::string> methods{"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"};
  // The most hedges for each call, over ten seconds. Empty: only the budget for retries counts.
  std::optional<double> budget = 0.05;
  GuardScope scope = GuardScope::Endpoint;  // of samples and budget; not Credentials
};

}  // namespace httpretry
