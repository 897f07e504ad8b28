// The attempts of one request: what the middleware `retry` gives the RetryLoop, and what it sends.
#pragma once

#include "budgets.hpp"

#include "lib/retry/retry_loop.hpp"

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

namespace httpretry {

// The policy of a request, and the names of what it shares a budget with.
struct ChosenPolicy {
  std::shared_ptr<const RetryPolicy> policy;
  // The request's own policy, if it has one: shares with requests that have the same object.
  const void* own = nullptr;
  std::optional<PolicySet> policies;  // keeps alive what the next two point into
  std::string_view identity;          // of the endpoint; empty where none matched
  std::string_view name;              // of the policy; may be empty
};

// Gives a POST or PATCH the idempotency key that the policy asks for, if it has none. A request
// with a key is repeatable.
void add_idempotency_key(const RetryPolicy& policy, Request& request);

class RequestAttempts {
 public:
  // All of these must outlive this.
  RequestAttempts(const RetryOptions& options, const ChosenPolicy& chosen, Budgets& budgets,
                  const Request& request, Call& call);
  RequestAttempts(const RequestAttempts&) = delete;
  RequestAttempts& operator=(const RequestAttempts&) = delete;

  // As RetryLoop's. `end` classifies the outcome and tells the observers; `cancel` returns the
  // outcome of the call.
  [[nodiscard]] RetryStep begin() { return loop_.begin(now()); }
  [[nodiscard]] RetryStep end(const Outcome& outcome);
  [[nodiscard]] Error cancel();
  // The request as this attempt sends it. Tells the observers.
  [[nodiscard]] Request prepare(const RetryStep& step);
  // Whether the last outcome may be needed after a wait.
  [[nodiscard]] bool keeps_outcome() const { return policy_->adaptive; }
  // The last attempt was a success, and the request's sink has not got its body yet.
  [[nodiscard]] bool owes_body() const;
  // The outcome of a call that ended before its first attempt, because of the send rate.
  [[nodiscard]] Error never_sent() const;

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  [[nodiscard]] std::shared_ptr<SharedBudget> find_budget(Budgets& budgets,
                                                          const ChosenPolicy& chosen) const;
  [[nodiscard]] RetryLoop::Options loop_options() const;
  [[nodiscard]] Classified classified(const Outcome& outcome, WallTime wall_now) const;
  void hold_back_what_rules_read();

  const RetryOptions& options_;
  const std::shared_ptr<const RetryPolicy>& policy_;
  const Request& request_;
  Call& call_;
  BudgetUse budget_;
  RetryLoop loop_;
  std::optional<Exchange> last_;  // of the attempt before the wait
  int exchanges_before_ = 0;      // the attempt
};

}  // namespace httpretry
