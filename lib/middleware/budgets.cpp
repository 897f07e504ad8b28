#include "budgets.hpp"

#include <utility>

namespace httpretry {

BudgetUse::BudgetUse(std::shared_ptr<RetryAccount> shared, bool adaptive, Time now,
                     RetryBudget* own, const Request* request)
    : shared_(std::move(shared)), own_(own), request_(request), last_(now) {
  claim_.adaptive = adaptive && shared_ != nullptr;
  if (shared_ && own_ == nullptr) shared_->begin_call(now);
}

BudgetUse::~BudgetUse() {
  try {
    cancel(last_);
  } catch (...) {  // thrown by the user's own budget; there is nobody to report it to
  }
}

Duration BudgetUse::begin_attempt(Time now) {
  Duration wait{};
  if (claim_.adaptive) wait = shared_->begin_attempt(now);
  if (wait == Duration::zero()) claim_.paid = false;
  return wait;
}

SharedLimits::Permit BudgetUse::end_attempt(const Classified& classified, Next next, Time now) {
  last_ = now;
  Permit permit;
  if (shared_) permit = end_shared(classified, next, now);
  if (own_ != nullptr) permit = {ask_own(classified, next, now), {}};
  claim_.paid = next == Next::Retry && permit.allowed;
  claim_.closed = next == Next::Stop || !permit.allowed;
  return permit;
}

SharedLimits::Permit BudgetUse::end_shared(const Classified& classified, Next next, Time now) {
  RetryAccount::Ended ended;
  ended.cls = classified.cls;
  ended.timeout = classified.timeout;
  ended.retries = next == Next::Retry;
  ended.stops = next == Next::Stop;
  ended.uses_budget = own_ == nullptr;
  ended.uses_rate = claim_.adaptive;
  const auto permit = shared_->end_attempt(claim_, ended, now);
  return {permit.allowed, permit.left};
}

bool BudgetUse::ask_own(const Classified& classified, Next next, Time now) {
  const bool allowed = next != Next::Retry || own_->take(*request_, classified, now);
  if (next == Next::Stop || !allowed) {
    claim_.closed = true;  // also where `settle` throws
    own_->settle(*request_, classified.cls == Class::Success, now);
  }
  return allowed;
}

void BudgetUse::cancel(Time now) {
  if (std::exchange(claim_.closed, true)) return;
  const bool give_back = std::exchange(claim_.paid, false);
  if (own_ != nullptr) {
    if (give_back) own_->give_back(*request_, now);
    own_->settle(*request_, false, now);
  } else if (shared_) {
    shared_->cancel(claim_, give_back, now);
  }
}

std::optional<HedgeRefused> BudgetUse::take_hedge(Time now) {
  if (own_ != nullptr) {
    Classified beside;
    beside.cls = Class::Transient;
    if (!own_->take(*request_, beside, now)) return HedgeRefused::RetryBudget;
  }
  if (!shared_) return std::nullopt;
  const auto why = shared_->take_hedge(claim_, own_ == nullptr, claim_.adaptive, now);
  if (why && own_ != nullptr) own_->give_back(*request_, now);
  return why;
}

void BudgetUse::give_back_hedge(Time now) {
  if (own_ != nullptr) return own_->give_back(*request_, now);
  if (shared_) shared_->give_back_hedge(claim_, now);
}

void BudgetUse::end_hedge(Time now) {
  if (claim_.extras > 0) shared_->end_hedge(claim_, now);
}

std::optional<std::int64_t> BudgetUse::left(Time now) const {
  return shared_ && own_ == nullptr ? shared_->left(now) : std::nullopt;
}

}  // namespace httpretry
