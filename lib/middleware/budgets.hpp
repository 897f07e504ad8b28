// How one call uses the budget and the send rate that it shares with others.
#pragma once

#include "lib/flow/shared_budget.hpp"
#include "lib/retry/retry_loop.hpp"

#include <httpretry/middleware/retry.hpp>

#include <memory>

namespace httpretry {

// However the call ends, what it took is given back once at most: at the latest by the destructor.
class BudgetUse final : public SharedLimits, public detail::PooledFrame {
 public:
  // Without both there are no limits. With `own` that is asked instead of the shared budget, of
  // which only the send rate counts then; it needs the request. Both must outlive this.
  BudgetUse(std::shared_ptr<RetryAccount> shared, bool adaptive, Time now,
            RetryBudget* own = nullptr, const Request* request = nullptr);
  ~BudgetUse() override;
  BudgetUse(const BudgetUse&) = delete;
  BudgetUse& operator=(const BudgetUse&) = delete;

  Duration begin_attempt(Time now) override;
  Permit end_attempt(const Classified& classified, Next next, Time now) override;
  void cancel(Time now) override;
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const override;
  // Takes what a hedge costs; the reason where that is not there.
  std::optional<HedgeRefused> take_hedge(Time now);
  // The latest one was not sent.
  void give_back_hedge(Time now);
  // One has ended.
  void end_hedge(Time now);

 private:
  Permit end_shared(const Classified& classified, Next next, Time now);
  bool ask_own(const Classified& classified, Next next, Time now);

  struct Claim : BudgetClaim {
    bool adaptive = false;  // the send rate counts
    bool paid = false;      // for a retry that has not begun
    bool closed = false;    // the call has ended
  };

  std::shared_ptr<RetryAccount> shared_;
  RetryBudget* const own_;
  const Request* const request_;
  Claim claim_;
  Time last_;  // the latest time that this was given
};

}  // namespace httpretry
