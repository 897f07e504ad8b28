// One request on its way through the retry stage: what is the same for all its attempts, and what
// is counted from one to the next.
#pragma once

#include "budgets.hpp"

#include <httpretry/builtin.hpp>

namespace httpretry {

// The policy of a request, and the names of the places whose budgets it may share.
struct ChosenPolicy {
  std::shared_ptr<const RetryPolicy> policy;
  std::string endpoint;
  std::string name;
};

class RetryRun {
 public:
  RetryRun(const RetryOptions& options, ChosenPolicy chosen, Budgets& budgets, Request& request,
           Call& call);
  ~RetryRun();
  RetryRun(const RetryRun&) = delete;
  RetryRun& operator=(const RetryRun&) = delete;

  // How long the client's own limit on the send rate holds the next attempt back.
  [[nodiscard]] Duration wait_for_rate();
  // The request as the next attempt sends it, and until when that may take.
  [[nodiscard]] Request begin_attempt(const Request& request);
  [[nodiscard]] Time attempt_deadline() const;
  // Whether to send again after `wait()`. Writes the attempt down and tells the observers.
  bool judge(const Request& request, const Outcome& outcome);
  [[nodiscard]] Duration wait() const { return wait_; }
  // The wait was cut short: the outcome of the call.
  [[nodiscard]] Error canceled(const Request& request);

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  [[nodiscard]] int next_number() const;
  void give_key(Request& request) const;
  [[nodiscard]] std::shared_ptr<SharedBudget> shared_budget(Budgets& budgets,
                                                            const ChosenPolicy& chosen,
                                                            const Request& request) const;
  bool resend_at_once(const Request& request, const Outcome& outcome);
  [[nodiscard]] Decision decide_after(const Request& request, const Classified& classified,
                                      WallTime wall);
  [[nodiscard]] bool may_take(const Request& request, const Classified& classified);
  void settle(const Request& request, bool success);
  [[nodiscard]] Attempt attempt_from(const Outcome& outcome) const;
  void write_down(const Request& request, const Outcome& outcome, const Classified& classified,
                  const Decision& decision);
  void record(const Request& request, Attempt attempt);

  const RetryOptions& options_;
  std::shared_ptr<const RetryPolicy> policy_;
  Call& call_;
  Time started_;
  BudgetUse budget_;
  Time began_{};
  AttemptFacts facts_;
  Duration wait_{};
  std::optional<Exchange> last_;  // of the attempt before the wait
  bool fresh_connection_ = false;
  bool resent_ = false;
  bool settled_ = false;
};

}  // namespace httpretry
