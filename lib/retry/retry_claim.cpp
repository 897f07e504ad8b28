#include "retry_claim.hpp"

#include <utility>

namespace httpretry {

RetryAccount::~RetryAccount() = default;

RetryClaim::RetryClaim(std::shared_ptr<RetryAccount> account, bool adaptive, Time now)
    : account_(std::move(account)), adaptive_(adaptive && account_), last_(now) {
  if (account_) account_->begin_call(now);
}

RetryClaim::~RetryClaim() {
  try {
    cancel(last_);
  } catch (...) {  // thrown by the user's own budget; there is nobody to report it to
  }
}

Duration RetryClaim::begin_attempt(Time now) {
  const auto wait = adaptive_ ? account_->take_send(now) : Duration::zero();
  if (wait == Duration::zero()) paid_ = false;
  return wait;
}

RetryPermit RetryClaim::end_attempt(const Classified& classified, AfterAttempt next, Time now) {
  if (!account_) return {};
  last_ = now;
  if (adaptive_) account_->count_attempt(classified.cls == Class::Throttle, now);
  closed_ = next == AfterAttempt::Stop;  // also where the next line throws
  const auto permit = account_->end_attempt(claim_, classified, next, now);
  paid_ = next == AfterAttempt::Retry && permit.allowed;
  closed_ = closed_ || !permit.allowed;
  return permit;
}

void RetryClaim::cancel(Time now) {
  if (!account_ || std::exchange(closed_, true)) return;
  account_->cancel(claim_, std::exchange(paid_, false), now);
}

std::optional<HedgeRefused> RetryClaim::take_hedge(Time now) {
  if (!account_) return std::nullopt;
  if (!account_->take_hedge(claim_, now)) return HedgeRefused::RetryBudget;
  if (!adaptive_ || account_->take_send(now) == Duration::zero()) return std::nullopt;
  account_->give_back_hedge(claim_, now);
  return HedgeRefused::Busy;
}

void RetryClaim::give_back_hedge(Time now) {
  if (account_) account_->give_back_hedge(claim_, now);
}

void RetryClaim::end_hedge(Time now) {
  if (claim_.extras > 0) account_->end_hedge(claim_, now);
}

std::optional<std::int64_t> RetryClaim::left(Time now) const {
  return account_ ? account_->left(now) : std::nullopt;
}

}  // namespace httpretry
