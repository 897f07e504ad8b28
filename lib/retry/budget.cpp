#include <httpretry/retry/budget.hpp>

#include <algorithm>

namespace httpretry {
namespace {

constexpr std::int64_t kOne = 1000;  // thousandths

}  // namespace

TokenBudget::TokenBudget(const BudgetPolicy& policy) : policy_(policy), left_(policy.capacity) {}

std::int64_t TokenBudget::cost(Class cls, bool timeout) const {
  if (cls == Class::Throttle) return policy_.throttle_cost;
  return timeout ? policy_.timeout_cost : policy_.retry_cost;
}

bool TokenBudget::take(BudgetClaim& claim, std::int64_t cost) {
  if (claim.settled || cost > left_) return false;
  left_ -= cost;
  claim.last = cost;
  return true;
}

void TokenBudget::cancel(BudgetClaim& claim) {
  if (claim.settled) return;
  give(claim.last);
  claim.settled = true;
}

void TokenBudget::settle(BudgetClaim& claim, bool success) {
  if (claim.settled) return;
  if (success) give(claim.last > 0 ? claim.last : policy_.refill);
  claim.settled = true;
}

void TokenBudget::give(std::int64_t amount) {
  left_ = amount > policy_.capacity - left_ ? policy_.capacity : left_ + amount;
}

RatioBudget::RatioBudget(const BudgetPolicy& policy) : policy_(policy) {}

std::int64_t RatioBudget::period(Time now) const {
  const auto length = std::max(policy_.window / kPeriods, Duration(1));
  return std::max<std::int64_t>(now.time_since_epoch() / length, 0);
}

bool RatioBudget::current(const Period& period, std::int64_t now) const {
  return period.used && period.number > now - kPeriods && period.number <= now;
}

void RatioBudget::add(std::int64_t amount, std::int64_t number) {
  auto& period = periods_[static_cast<std::size_t>(number % kPeriods)];
  if (!period.used || period.number != number) period = {number, 0, true};
  period.sum += amount;
}

void RatioBudget::request(Time now) { add(policy_.ratio, period(now)); }

bool RatioBudget::take(BudgetClaim& claim, Time now) {
  if (claim.settled || left(now) < kOne) return false;
  claim.period = period(now);
  claim.last = kOne;
  add(-kOne, claim.period);
  return true;
}

void RatioBudget::cancel(BudgetClaim& claim, Time now) {
  // What has left the window has given itself back.
  const auto within = claim.period > period(now) - kPeriods;
  if (!claim.settled && claim.last > 0 && within) add(claim.last, claim.period);
  claim.settled = true;
}

std::int64_t RatioBudget::left(Time now) const {
  const auto seconds = static_cast<double>(policy_.window.count()) / 1e9;
  auto sum = static_cast<std::int64_t>(static_cast<double>(policy_.min_per_second) * seconds);
  for (const auto& one : periods_) {
    if (current(one, period(now))) sum += one.sum;
  }
  return std::max<std::int64_t>(sum, 0);
}

bool RatioBudget::full(Time now) const {
  return std::none_of(periods_.begin(), periods_.end(),
                      [&](const Period& one) { return current(one, period(now)); });
}

GrpcBudget::GrpcBudget(const BudgetPolicy& policy) : policy_(policy), left_(policy.capacity) {}

bool GrpcBudget::failed() {
  left_ = std::max<std::int64_t>(left_ - kOne, 0);
  return left_ > policy_.capacity / 2;
}

void GrpcBudget::succeeded() { left_ = std::min(left_ + policy_.refill, policy_.capacity); }

Budget::Budget(const BudgetPolicy& policy) {
  switch (policy.kind) {
    case BudgetPolicy::Kind::None: break;
    case BudgetPolicy::Kind::Tokens: state_ = TokenBudget(policy); break;
    case BudgetPolicy::Kind::Ratio: state_ = RatioBudget(policy); break;
    case BudgetPolicy::Kind::Grpc: state_ = GrpcBudget(policy); break;
  }
}

void Budget::begin(Time now) {
  if (auto* const ratio = std::get_if<RatioBudget>(&state_)) ratio->request(now);
}

bool Budget::take(BudgetClaim& claim, Class cls, bool timeout, Time now) {
  if (auto* const tokens = std::get_if<TokenBudget>(&state_)) {
    return tokens->take(claim, tokens->cost(cls, timeout));
  }
  if (auto* const ratio = std::get_if<RatioBudget>(&state_)) return ratio->take(claim, now);
  if (auto* const grpc = std::get_if<GrpcBudget>(&state_)) {
    claim.settled = !grpc->failed();  // this failure has been counted, and is the call's last
    return !claim.settled;
  }
  return true;
}

void Budget::cancel(BudgetClaim& claim, Time now) {
  if (auto* const tokens = std::get_if<TokenBudget>(&state_)) tokens->cancel(claim);
  if (auto* const ratio = std::get_if<RatioBudget>(&state_)) ratio->cancel(claim, now);
  claim.settled = true;  // of Grpc nothing comes back: the attempt did fail
}

void Budget::settle(BudgetClaim& claim, Class last, Time) {
  const bool success = last == Class::Success;
  if (auto* const tokens = std::get_if<TokenBudget>(&state_)) tokens->settle(claim, success);
  auto* const grpc = std::get_if<GrpcBudget>(&state_);
  if (grpc != nullptr && !claim.settled) {
    if (success) grpc->succeeded();
    // A failure counts there whatever it was that allowed no further attempt.
    if (last == Class::Throttle || last == Class::Transient || last == Class::Transport)
      grpc->failed();
  }
  claim.settled = true;
}

std::optional<std::int64_t> Budget::left(Time now) const {
  if (const auto* const tokens = std::get_if<TokenBudget>(&state_)) return tokens->left();
  if (const auto* const ratio = std::get_if<RatioBudget>(&state_)) return ratio->left(now);
  if (const auto* const grpc = std::get_if<GrpcBudget>(&state_)) return grpc->left();
  return std::nullopt;
}

bool Budget::full(Time now) const {
  if (const auto* const tokens = std::get_if<TokenBudget>(&state_)) return tokens->full();
  if (const auto* const ratio = std::get_if<RatioBudget>(&state_)) return ratio->full(now);
  if (const auto* const grpc = std::get_if<GrpcBudget>(&state_)) return grpc->full();
  return true;
}

}  // namespace httpretry
