#pragma once

#include "lib/core/guard/detail/shared_budget.hpp"

#include <httpretry/chain/middleware.hpp>
#include <httpretry/middleware/retry.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace httpretry {

// The policy of a request, and the account that pays for its retries.
struct ChosenPolicy {
  std::shared_ptr<const ResolvedPolicy> resolved;  // nullptr if the request brought its own policy
  // The policy of `resolved`, or a copy of it without retries if the request forbids retries.
  std::shared_ptr<const RetryPolicy> policy;
  std::shared_ptr<RetryAccount> account;  // nullptr if nothing limits the retries

  // Returns whether a call that waits must keep its last outcome. A send rate, or a breaker that
  // holds back only retries, may end such a call before another attempt. Other calls keep no
  // response while they wait.
  [[nodiscard]] bool may_end_with_last() const {
    return policy->adaptive || breaker_holds_only_retries();
  }
  [[nodiscard]] bool breaker_holds_only_retries() const {
    const auto& breaker = policy->guards.breaker;
    return breaker && breaker->applies_to == BreakerPolicy::AppliesTo::Retries;
  }
};

// Finds the policy of a request and the account that pays for its retries. Each retry middleware
// has one, which serves its calls on all threads. It owns the budgets, and reports changes of the
// policy file and of the shared state to the observers.
class RetryPolicies {
 public:
  // `options` must outlive this.
  explicit RetryPolicies(const RetryOptions& options) : options_(options) {}

  // Returns the policy of a request, and the account: the retry budget, shared with other calls,
  // that pays for its retries. `request` must outlive the result. First reports to the observers
  // if the policy file or the shared state has changed.
  ChosenPolicy find(const Request& request, const Call& call, const Next& next);

 private:
  std::shared_ptr<RetryAccount> account_for(const ChosenPolicy& chosen, const Request& request,
                                            const Call& call, const PolicyReload* reload);
  [[nodiscard]] const PolicySource& policies_of(const Call& call) const;
  void report(const Call& call, const PolicyReload& reload, const PolicySet& policies,
              const Next& next);
  void report(const Call& call, const SharedState& shared);

  const RetryOptions& options_;
  const PolicySource standard_{PolicySet()};
  // The numbers of the latest changes that were reported.
  std::atomic<std::uint64_t> reload_ = 0;
  std::atomic<std::uint64_t> shared_state_change_ = 0;
  Budgets budgets_;
};

}  // namespace httpretry
