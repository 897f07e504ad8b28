// HedgePolicy: when a request is sent a second time because the first send is slow. Plain data with
// the members of a policy file; lib/core/policy/policy-file.md explains each of them.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/retry/guard_policy.hpp>

#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// HedgePolicy is `hedge`: when and how often hedges are sent.
struct HTTPRETRY_API HedgePolicy {
  HedgePolicy() = default;
  friend bool operator==(const HedgePolicy&, const HedgePolicy&) = default;

  // How long a send may have no response before the next one is made. If `quantile` is set, that
  // quantile of the times to the response headers in the last 30 seconds is used instead.
  Duration after = std::chrono::milliseconds(100);
  // 0.95 is the time within which 95 % of the responses arrive. 0 uses `after`.
  double quantile = 0;
  // The next four are only for a quantile. `initial` is the time to use while there are fewer than
  // `min_samples`; if it is empty, no hedge is sent then.
  std::optional<Duration> initial;
  int min_samples = 50;                         // fewer samples give no quantile
  Duration min = std::chrono::milliseconds(2);  // `after` is not shorter than this
  Duration max = std::chrono::seconds(5);       // no hedge is sent if the quantile is larger

  int max_hedges = 1;  // per attempt
  // Empty for all methods.
  std::vector<std::string> methods{"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"};
  // The maximum number of hedges per call, averaged over ten seconds. If empty, only the budget for
  // retries applies.
  std::optional<double> budget = 0.05;
  GuardScope scope = GuardScope::Endpoint;  // of the samples and the budget; not Credentials
};

}  // namespace httpretry
