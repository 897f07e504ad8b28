// One request on its way through the retry stage: what is the same for all its attempts, and what
// is counted from one to the next.
#pragma once

#include "budgets.hpp"

#include "lib/retry/progress.hpp"

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

namespace httpretry {

// The policy of a request, and the names of the places whose budgets it may share.
struct ChosenPolicy {
  std::shared_ptr<const RetryPolicy> policy;
  // Of the request itself: then it is in no set, and shares with what has the very same.
  const void* own = nullptr;
  std::optional<PolicySet> policies;  // keeps what the next two point into
  std::string_view identity;          // of the entry; empty where none matched
  std::string_view name;              // of the policy; empty where it has none
};

// Gives a POST or PATCH that lacks one the key that the policy asks for; with it, it is repeatable.
void give_key(const RetryPolicy& policy, Request& request);

class RetryRun {
 public:
  // Everything but the policy must outlive the run.
  RetryRun(const RetryOptions& options, const ChosenPolicy& chosen, Budgets& budgets,
           const Request& request, Call& call);
  RetryRun(const RetryRun&) = delete;
  RetryRun& operator=(const RetryRun&) = delete;

  // How long the client's own limit on the send rate holds the next attempt back, and whether so
  // long that the call must end instead.
  [[nodiscard]] Duration wait_for_rate();
  [[nodiscard]] bool may_be_held_back() const { return policy_->adaptive; }
  [[nodiscard]] bool too_long(Duration wait) const;
  // The request as the next attempt sends it, and until when that may take.
  [[nodiscard]] Request begin_attempt();
  [[nodiscard]] Time attempt_deadline() const;
  // Whether to send again after `wait()`. Writes the attempt down and tells the observers.
  bool judge(const Outcome& outcome);
  [[nodiscard]] Duration wait() const { return wait_; }
  // The outcome is good, and the request's sink has yet to get the body.
  [[nodiscard]] bool owes_body() const;
  // The wait was cut short, or not begun because of the send rate: the outcome of the call.
  [[nodiscard]] Error canceled();
  [[nodiscard]] Outcome held_back(Duration wait, std::optional<Outcome> last);

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  [[nodiscard]] int next_number() const;
  [[nodiscard]] std::shared_ptr<SharedBudget> shared_budget(Budgets& budgets,
                                                            const ChosenPolicy& chosen) const;
  bool resend_at_once(const Outcome& outcome);
  [[nodiscard]] Classified classified(const Observed& observed) const;
  [[nodiscard]] Decision decide_after(const Classified& classified, WallTime wall);
  [[nodiscard]] Attempt attempt_from(const Outcome& outcome) const;
  void write_down(const Outcome& outcome, const Classified& classified, const Decision& decision);
  void record(Attempt attempt);
  void hold_back_what_rules_read();

  const RetryOptions& options_;
  std::shared_ptr<const RetryPolicy> policy_;
  const Request& request_;
  Call& call_;
  Time started_;
  BudgetUse budget_;
  policy::Progress progress_;
  Time began_{};
  Duration wait_{};
  std::optional<Exchange> last_;  // of the attempt before the wait
  int exchanges_before_ = 0;      // the attempt
  bool succeeded_ = false;
  bool fresh_connection_ = false;
  bool resent_ = false;
};

}  // namespace httpretry
