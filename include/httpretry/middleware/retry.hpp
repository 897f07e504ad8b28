// retry: the middleware that retries requests according to a policy.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>
#include <httpretry/retry/decide.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace httpretry {

// RetryBudget is the interface of a custom budget for retries; budget.hpp explains what budgets are
// for. Several threads call it at once.
class HTTPRETRY_API RetryBudget {
 public:
  virtual ~RetryBudget();
  // Called before the wait for each retry, and before each hedge. Returns false to forbid it.
  virtual bool take(const Request& request, const Classified& classified, Time now) = 0;
  // Called if what the last `take` allowed does not happen: the call ended before the retry was
  // sent, or the hedge could not be sent.
  virtual void give_back(const Request& request, Time now) = 0;
  // Called once at the end of each call.
  virtual void settle(const Request& request, bool success, Time now) = 0;
};

// The options of `retry`.
struct HTTPRETRY_API RetryOptions {
  RetryOptions() = default;

  // The policies; each request gets that of its endpoint. By default the client's policies apply
  // (ClientOptions::policies), or the preset "standard" if there are none.
  std::optional<PolicySource> policies;
  // Each of the next three members replaces one part of the middleware. Several threads call them
  // at once. For a request with a sink, `classify` receives a body of up to 64 KiB before the sink
  // does. Of a longer body it receives only the beginning.
  std::function<Classified(const RetryPolicy&, const Request&, const Observed&)> classify;
  // Returns the backoff. A server delay still applies. The last argument is uniform in [0, 1).
  std::function<Duration(const RetryPolicy&, const Classified&, const RetryState&, double)> backoff;
  std::shared_ptr<RetryBudget> budget;  // nullptr: the budgets of the policies
};

// Returns a middleware that retries requests that failed and may succeed. After each attempt it
// classifies the outcome (classify), decides (decide), takes from the budget and waits. A wait uses
// no thread, no connection and no libcurl handle. RequestOptions::policy and RequestOptions::retry
// take precedence over the options here.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryOptions options = RetryOptions());
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(PolicySource policies);
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(PolicySet policies);
// For retry(PolicySet::load("policy.json")). Throws Failure if the argument is an error.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(Result<PolicySet> loaded);
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(Result<PolicySource> watched);
// Throws std::invalid_argument if `check` rejects the policy.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryPolicy policy);

}  // namespace httpretry
