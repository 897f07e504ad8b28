// retry: the middleware that retries requests, by a policy.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/retry/decide.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace httpretry {

// A budget of your own for retries; budget.hpp says what budgets are for. Called on several threads
// at once.
class HTTPRETRY_API RetryBudget {
 public:
  virtual ~RetryBudget();
  // Before the wait for each retry, and before each hedge; false forbids it.
  virtual bool take(const Request& request, const Classified& classified, Time now) = 0;
  // The retry that the last `take` allowed is not made: the call was canceled in its wait. Or the
  // hedge could not be sent.
  virtual void give_back(const Request& request, Time now) = 0;
  // Once for each call, at its end.
  virtual void settle(const Request& request, bool success, Time now) = 0;
};

struct HTTPRETRY_API RetryOptions {
  RetryOptions() = default;

  // Each request gets the policy of its endpoint. By default those of the client
  // (ClientOptions::policies), or else the preset `standard`.
  std::optional<PolicySource> policies;
  // Each of the next three replaces one part of the middleware. They are called on several threads
  // at once. For a request with a sink, `classify` gets a body of up to 64 KiB before the sink
  // does; of a longer one it gets the beginning, and judges by that.
  std::function<Classified(const RetryPolicy&, const Request&, const Observed&)> classify;
  // The backoff; a server delay still counts. The last argument is uniform in [0, 1).
  std::function<Duration(const RetryPolicy&, const Classified&, const RetryState&, double)> backoff;
  std::shared_ptr<RetryBudget> budget;
};

// Retries requests that failed and may succeed. After each attempt it classifies the outcome
// (classify), decides (decide), takes from the budget and waits. A wait holds no thread, no
// connection and no handle of libcurl. RequestOptions::policy and RequestOptions::retry go before
// the options here.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryOptions options = RetryOptions());
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(PolicySource policies);
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(PolicySet policies);
// retry(PolicySet::load("policy.json")). Throws Failure, with the error, if they could not be read.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(Result<PolicySet> loaded);
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(Result<PolicySource> watched);
// Throws std::invalid_argument where `check` does.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryPolicy policy);

}  // namespace httpretry
