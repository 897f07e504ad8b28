#include <httpretry/retry/budget.hpp>

#include <algorithm>

namespace httpretry {
namespace {

using Kind = BudgetPolicy::Kind;

constexpr std::int64_t kOne = 1000;  // thousandths
// Of the retries that a window always allows: the largest rate and window would overflow.
constexpr double kMostAlways = 1e18;

}  // namespace

Budget::Budget(const BudgetPolicy& policy) : policy_(policy), left_(policy.capacity) {}

void Budget::begin(Time now) {
  if (policy_.kind == Kind::Ratio) add(policy_.ratio, period(now));
}

bool Budget::take(BudgetClaim& claim, Class cls, bool timeout, Time now) {
  if (policy_.kind == Kind::None) return true;
  if (policy_.kind == Kind::Grpc) {
    claim.settled = !count_failure();  // this failure has been counted, and is the call's last
    return !claim.settled;
  }
  const bool tokens = policy_.kind == Kind::Tokens;
  const auto price = tokens ? cost(cls, timeout) : kOne;
  if (claim.settled || price > (tokens ? left_ : left_in_window(now))) return false;
  claim.last = price;
  claim.period = period(now);
  if (tokens) {
    left_ -= price;
  } else {
    add(-price, claim.period);
  }
  return true;
}

bool Budget::take_hedge(BudgetClaim& claim, Time now) {
  if (policy_.kind == Kind::Grpc) return left_ > policy_.capacity / 2;
  return take(claim, Class::Transient, false, now);
}

void Budget::cancel(BudgetClaim& claim, Time now) {
  if (claim.settled) return;
  claim.settled = true;
  if (policy_.kind == Kind::Tokens) give(claim.last);
  // What was taken before the window is free again already.
  const bool within = claim.period > period(now) - kPeriods;
  if (policy_.kind == Kind::Ratio && within && claim.last > 0) add(claim.last, claim.period);
  // Grpc gives nothing back: the attempt did fail.
}

void Budget::settle(BudgetClaim& claim, Class last, Time) {
  if (claim.settled) return;
  claim.settled = true;
  const bool grpc = policy_.kind == Kind::Grpc;
  if (last == Class::Success) {
    if (grpc || policy_.kind == Kind::Tokens) give(std::max(claim.last, policy_.refill));
  } else if (grpc && last != Class::Permanent && last != Class::Pending) {
    count_failure();  // whatever it was that allowed no further attempt
  }
}

std::optional<std::int64_t> Budget::left(Time now) const {
  if (policy_.kind == Kind::None) return std::nullopt;
  return policy_.kind == Kind::Ratio ? left_in_window(now) : left_;
}

bool Budget::full(Time now) const {
  return left_ == policy_.capacity &&
         std::none_of(periods_.begin(), periods_.end(),
                      [&](const Period& one) { return in_window(one, now); });
}

std::int64_t Budget::cost(Class cls, bool timeout) const {
  if (cls == Class::Throttle) return policy_.throttle_cost;
  return timeout ? policy_.timeout_cost : policy_.retry_cost;
}

// Not `left_ + amount`, which may overflow.
void Budget::give(std::int64_t amount) {
  left_ = amount > policy_.capacity - left_ ? policy_.capacity : left_ + amount;
}

// Whether a retry is allowed.
bool Budget::count_failure() {
  left_ = std::max<std::int64_t>(left_ - kOne, 0);
  return left_ > policy_.capacity / 2;
}

std::int64_t Budget::period(Time now) const {
  const auto length = std::max(policy_.window / kPeriods, Duration(1));
  return std::max<std::int64_t>(now.time_since_epoch() / length, 0);
}

bool Budget::in_window(const Period& one, Time now) const {
  const auto current = period(now);
  return one.used && one.number > current - kPeriods && one.number <= current;
}

std::int64_t Budget::sum_of_window(Time now) const {
  std::int64_t sum = 0;
  for (const auto& one : periods_) sum += in_window(one, now) ? one.sum : 0;
  return sum;
}

std::int64_t Budget::left_in_window(Time now) const {
  const auto seconds = static_cast<double>(policy_.window.count()) / 1e9;
  const auto always = static_cast<double>(policy_.min_per_second) * seconds;
  const auto sum = static_cast<std::int64_t>(std::min(always, kMostAlways)) + sum_of_window(now);
  return std::max<std::int64_t>(sum, 0);
}

std::int64_t Budget::balance(Time now) const {
  return policy_.kind == Kind::Ratio ? sum_of_window(now) : left_;
}

void Budget::set_balance(std::int64_t thousandths, Time now) {
  if (policy_.kind == Kind::Ratio) {
    add(thousandths - sum_of_window(now), period(now));
  } else {
    left_ = std::clamp<std::int64_t>(thousandths, 0, policy_.capacity);
  }
}

void Budget::add(std::int64_t amount, std::int64_t number) {
  auto& one = periods_[static_cast<std::size_t>(number % kPeriods)];
  if (!one.used || one.number != number) one = {number, 0, true};
  one.sum += amount;
}

}  // namespace httpretry
