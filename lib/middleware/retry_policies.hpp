// RetryPolicies: finds the policy of a request and the account that its retries are paid from.
#pragma once

#include "missing_stages.hpp"
#include "request_attempts.hpp"

#include "lib/flow/shared_budget.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace httpretry {

// What retry() finds for a request.
struct FoundPolicy {
  ChosenPolicy chosen;
  std::shared_ptr<RetryAccount> account;  // nullptr if nothing limits the retries
};

// Belongs to one retry middleware and serves its calls on all threads. It keeps the budgets, and it
// reports changes of the policy file and of the shared state to the observers.
class RetryPolicies {
 public:
  // `options` must outlive this.
  explicit RetryPolicies(const RetryOptions& options) : options_(options) {}

  [[nodiscard]] FoundPolicy find(const Request& request, const Call& call, const Next& next);

 private:
  [[nodiscard]] std::shared_ptr<RetryAccount> find_account(const ChosenPolicy& chosen,
                                                           const Request& request, const Call& call,
                                                           const PolicyReload* reload);
  [[nodiscard]] std::shared_ptr<RetryAccount> account(std::string_view key,
                                                      const BudgetPolicy& budget, const Call& call,
                                                      const PolicyReload* reload);
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

// Describes the settings of a request's own policy for which the chain after `retry` has no stage.
[[nodiscard]] std::string missing_stages(const RetryPolicy& policy, const Next& next);

}  // namespace httpretry
