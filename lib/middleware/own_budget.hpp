// OwnBudget: the budget of the user (RetryOptions::budget), for one call.
#pragma once

#include <httpretry/middleware/retry.hpp>
#include <httpretry/retry/retry_account.hpp>

#include <memory>

namespace httpretry {

class OwnBudget final : public RetryAccount {
 public:
  // `rate` has the send rate that counts beside it; nullptr where none does. The others must
  // outlive this.
  OwnBudget(RetryBudget& budget, const Request& request, std::shared_ptr<RetryAccount> rate);

  Duration take_send(Time now) override;
  void count_attempt(bool throttled, Time now) override;
  void begin_call(Time now) override;
  RetryPermit end_attempt(BudgetClaim& claim, const Classified& classified, AfterAttempt next,
                          Time now) override;
  void cancel(BudgetClaim& claim, bool paid, Time now) override;
  bool take_hedge(BudgetClaim& claim, Time now) override;
  void give_back_hedge(BudgetClaim& claim, Time now) override;
  void end_hedge(BudgetClaim& claim, Time now) override;
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const override;

 private:
  void settle(bool success, Time now);

  RetryBudget& budget_;
  const Request& request_;
  const std::shared_ptr<RetryAccount> rate_;
  bool settled_ = false;  // or `settle` has thrown
};

}  // namespace httpretry
