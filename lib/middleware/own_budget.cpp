#include "own_budget.hpp"

#include <utility>

namespace httpretry {

RetryBudget::~RetryBudget() = default;

OwnBudget::OwnBudget(RetryBudget& budget, const Request& request,
                     std::shared_ptr<RetryAccount> rate)
    : budget_(budget), request_(request), rate_(std::move(rate)) {}

Duration OwnBudget::take_send(Time now) { return rate_ ? rate_->take_send(now) : Duration::zero(); }

void OwnBudget::count_attempt(bool throttled, Time now) {
  if (rate_) rate_->count_attempt(throttled, now);
}

void OwnBudget::begin_call(Time /*now*/) {}

RetryPermit OwnBudget::end_attempt(BudgetClaim& /*claim*/, const Classified& classified,
                                   AfterAttempt next, Time now) {
  RetryPermit permit;
  permit.allowed = next != AfterAttempt::Retry || budget_.take(request_, classified, now);
  if (next == AfterAttempt::Stop || !permit.allowed) settle(classified.cls == Class::Success, now);
  return permit;
}

void OwnBudget::cancel(BudgetClaim& /*claim*/, bool paid, Time now) {
  if (settled_) return;
  if (paid) budget_.give_back(request_, now);
  settle(false, now);
}

bool OwnBudget::take_hedge(BudgetClaim& /*claim*/, Time now) {
  Classified beside;
  beside.cls = Class::Transient;
  return budget_.take(request_, beside, now);
}

void OwnBudget::give_back_hedge(BudgetClaim& /*claim*/, Time now) {
  budget_.give_back(request_, now);
}
void OwnBudget::end_hedge(BudgetClaim& /*claim*/, Time /*now*/) {}
std::optional<std::int64_t> OwnBudget::left(Time /*now*/) const { return std::nullopt; }

void OwnBudget::settle(bool success, Time now) {
  if (!std::exchange(settled_, true)) budget_.settle(request_, success, now);
}

}  // namespace httpretry
