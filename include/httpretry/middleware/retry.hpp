// retry: the stage that sends a request again when that may help, by a policy.
#pragma once

#include <httpretry/flow/middleware.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/retry/decide.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace httpretry {

// A budget of your own for retries; see budget.hpp for what budgets are for. Asked by calls on
// several threads at once.
class HTTPRETRY_API RetryBudget {
 public:
  virtual ~RetryBudget();
  // A retry of the request is decided; false forbids it.
  virtual bool take(const Request& request, const Classified& classified, Time now) = 0;
  // The retry that the last `take` allowed is not made after all: the call was canceled in its
  // wait.
  virtual void give_back(const Request& request, Time now) = 0;
  // The call is over, once.
  virtual void settle(const Request& request, bool success, Time now) = 0;
};

struct HTTPRETRY_API RetryOptions {
  RetryOptions() = default;

  // Each request gets the policy of its endpoint. Left out: the client's
  // (ClientOptions::policies), or the preset `standard`.
  std::optional<PolicySource> policies;
  // Each replaces one part of the stage where it is set, and leaves the rest as it is. They are
  // called on several threads at once.
  std::function<Classified(const RetryPolicy&, const Request&, const Observed&)> classify;
  // Our own wait, before the server is heard; the last argument is uniform in [0, 1).
  std::function<Duration(const RetryPolicy&, const Classified&, const AttemptFacts&, double)>
      backoff;
  std::shared_ptr<RetryBudget> budget;
};

// Sends again what failed and may succeed, by a policy. It looks at each outcome (classify),
// decides (decide), asks the budget and waits; it holds no thread, no connection and no handle of
// libcurl's meanwhile. A request's own policy (RequestOptions::policy) and RequestOptions::retry go
// first.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryOptions options = RetryOptions());
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(PolicySource policies);
// Throws std::invalid_argument for a policy that `check` refuses.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryPolicy policy);

}  // namespace httpretry
