#include <httpretry/retry/budget.hpp>

#include "lib/core/base/saturating.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace httpretry {
namespace {

using Kind = BudgetPolicy::Kind;

constexpr std::int64_t kOne = 1000;  // one retry; amounts are in thousandths
// Caps the retries that a window guarantees: the largest rate times the largest window would
// overflow.
constexpr double kMostGuaranteed = 1e18;

// Scales `left` from the old capacity to the new one, rounded.
std::int64_t scaled(std::int64_t left, std::int64_t old_capacity, std::int64_t new_capacity) {
  if (left == old_capacity) return new_capacity;
  const auto all = static_cast<double>(new_capacity);
  const auto part = static_cast<double>(left) / static_cast<double>(old_capacity) * all;
  return part < all ? std::llround(part) : new_capacity;
}

// From botocore's retries/ (adaptive.py, bucket.py, throttling.py).
constexpr double kMinFillRate = 0.5;
constexpr double kMinCapacity = 1;
constexpr double kNewestWeight = 0.8;
constexpr double kReduction = 0.7;
constexpr double kScale = 0.4;
constexpr double kBucketsPerSecond = 2;
constexpr double kNanosecond = 1e-9;

// Returns how many seconds after a throttle the curve is back at the rate that caused it. This is
// CUBIC's K (RFC 9438).
double plateau(double last_max_rate) {
  return std::cbrt(last_max_rate * (1 - kReduction) / kScale);
}

}  // namespace

Budget::Budget(const BudgetPolicy& policy) : policy_(policy), left_(policy.capacity) {}

void Budget::change(const BudgetPolicy& policy, Time now) {
  left_ = scaled(left_, policy_.capacity, policy.capacity);
  if (policy.window != policy_.window) change_window(policy.window, now);
  policy_ = policy;
}

Budget Budget::split(const BudgetPolicy& policy, Time now) const {
  auto other = *this;
  other.calls_ = 0;
  other.extras_ = 0;
  other.change(policy, now);
  return other;
}

void Budget::begin(Time now) {
  if (policy_.kind == Kind::Ratio) add(policy_.ratio, period(now));
  if (policy_.kind == Kind::Concurrent) ++calls_;
}

bool Budget::take(BudgetClaim& claim, Class cls, bool timeout, Time now) {
  if (policy_.kind != Kind::Grpc) return take_extra(claim, claim.retry, cost(cls, timeout), now);
  const bool allowed = count_failure();
  claim.settled = !allowed;  // so that `settle` does not count the failure again
  return allowed;
}

bool Budget::take_hedge(BudgetClaim& claim, Time now) {
  if (policy_.kind == Kind::Grpc) return left_ > policy_.capacity / 2;
  return take_extra(claim, claim.hedge, policy_.retry_cost, now);
}

// Takes an extra send, a retry or a hedge, and records it in the call's `claim`. Its cost is
// `tokens` in a budget of tokens, otherwise one retry. Stores the cost in `taken`, the part of the
// claim that pay_back refunds. Returns false, and takes nothing, if the budget forbids the send.
bool Budget::take_extra(BudgetClaim& claim, BudgetClaim::Taken& taken, std::int64_t tokens,
                        Time now) {
  if (policy_.kind == Kind::None) return true;
  if (claim.settled) return false;
  if (policy_.kind == Kind::Concurrent) {
    if (extras_ >= most_extras()) return false;
    ++extras_;
    ++claim.extras;
    return true;
  }
  return pay(taken, policy_.kind == Kind::Tokens ? tokens : kOne, now);
}

void Budget::give_back_hedge(BudgetClaim& claim, Time now) {
  pay_back(claim.hedge, now);
  end_hedge(claim);
}

void Budget::end_hedge(BudgetClaim& claim) { end_extras(claim, 1); }

void Budget::end_attempt(BudgetClaim& claim) { end_extras(claim, claim.extras); }

void Budget::cancel(BudgetClaim& claim, Time now) {
  if (claim.settled) return;
  close(claim);
  pay_back(claim.retry, now);
  // Grpc gives nothing back, because the attempt did fail.
}

void Budget::settle(BudgetClaim& claim, Class last, Time) {
  if (claim.settled) return;
  close(claim);
  const bool grpc = policy_.kind == Kind::Grpc;
  if (last == Class::Success) {
    if (grpc || policy_.kind == Kind::Tokens) give(std::max(claim.retry.amount, policy_.refill));
  } else if (grpc && last != Class::Permanent && last != Class::Pending) {
    count_failure();  // regardless of what ended the call
  }
}

std::optional<std::int64_t> Budget::left(Time now) const {
  if (policy_.kind == Kind::None) return std::nullopt;
  if (policy_.kind == Kind::Concurrent) {
    return std::max<std::int64_t>(most_extras() - extras_, 0) * kOne;
  }
  return policy_.kind == Kind::Ratio ? left_in_window(now) : left_;
}

bool Budget::full(Time now) const {
  return left_ == policy_.capacity && calls_ == 0 && extras_ == 0 &&
         std::ranges::none_of(periods_, [&](const Period& one) { return in_window(one, now); });
}

std::int64_t Budget::cost(Class cls, bool timeout) const {
  if (cls == Class::Throttle) return policy_.throttle_cost;
  return timeout ? policy_.timeout_cost : policy_.retry_cost;
}

// Takes `price`. Takes nothing and returns false if less is left.
bool Budget::pay(BudgetClaim::Taken& taken, std::int64_t price, Time now) {
  const bool tokens = policy_.kind == Kind::Tokens;
  if (price > (tokens ? left_ : left_in_window(now))) return false;
  taken = {price, now};
  if (tokens) {
    left_ -= price;
  } else {
    add(-price, period(now));
  }
  return true;
}

// Refunds what `pay` took, once.
void Budget::pay_back(BudgetClaim::Taken& taken, Time now) {
  const auto amount = std::exchange(taken.amount, 0);
  if (policy_.kind == Kind::Tokens) give(amount);
  // An amount taken before the window began has left it already.
  const auto paid_in_period = period(taken.when);
  const bool in_window = paid_in_period > period(now) - kPeriods;
  if (policy_.kind == Kind::Ratio && in_window && amount > 0) add(amount, paid_in_period);
}

// Follows Envoy: rounded down, and the call that asks counts as in flight. More may be in flight
// than this allows, because calls that have ended no longer count.
std::int64_t Budget::most_extras() const {
  return std::max<std::int64_t>(policy_.min, calls_ * policy_.ratio / kOne);
}

void Budget::close(BudgetClaim& claim) {
  claim.settled = true;
  if (policy_.kind != Kind::Concurrent) return;
  end_attempt(claim);
  --calls_;
}

void Budget::end_extras(BudgetClaim& claim, std::int32_t number) {
  number = std::min(number, claim.extras);
  extras_ -= number;
  claim.extras -= number;
}

// Avoids `left_ + amount`, which may overflow.
void Budget::give(std::int64_t amount) {
  left_ = amount > policy_.capacity - left_ ? policy_.capacity : left_ + amount;
}

// Returns whether a retry is allowed.
bool Budget::count_failure() {
  left_ = std::max<std::int64_t>(left_ - kOne, 0);
  return left_ > policy_.capacity / 2;
}

Duration Budget::period_length() const {
  return std::max<Duration>(policy_.window / kPeriods, Duration(1));
}

std::int64_t Budget::period(Time now) const {
  return std::max<std::int64_t>(now.time_since_epoch() / period_length(), 0);
}

bool Budget::in_window(const Period& one, Time now) const {
  const auto current = period(now);
  return one.number >= 0 && one.number > current - kPeriods && one.number <= current;
}

std::int64_t Budget::sum_of_window(Time now) const {
  std::int64_t sum = 0;
  for (const auto& one : periods_) sum += in_window(one, now) ? one.sum : 0;
  return sum;
}

std::int64_t Budget::left_in_window(Time now) const {
  const auto seconds = static_cast<double>(policy_.window.count()) / 1e9;
  const auto guaranteed =
      std::min(static_cast<double>(policy_.min_per_second) * seconds, kMostGuaranteed);
  return std::max<std::int64_t>(static_cast<std::int64_t>(guaranteed) + sum_of_window(now), 0);
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
  if (one.number != number) one = {number, 0};
  one.sum += amount;
}

// Changes the length of the window. Adds each period of the old window to the new window's period
// in which it ended.
void Budget::change_window(Duration window, Time now) {
  const auto old_length = period_length();
  auto old_periods = std::exchange(periods_, {});
  // Empties the periods that have left the old window.
  std::ranges::replace_if(
      old_periods, [&](const Period& old) { return !in_window(old, now); }, Period());
  policy_.window = window;  // from here on, period() uses the new length
  for (const auto& old : old_periods) {
    const auto end = std::min(Time((old.number + 1) * old_length - Duration(1)), now);
    if (old.number >= 0 && period(end) > period(now) - kPeriods) add(old.sum, period(end));
  }
}

SendRate::SendRate(Time start) : start_(start) {}

double SendRate::seconds(Time now) const {
  return static_cast<double>(saturating::between(start_, now).count()) * kNanosecond;
}

void SendRate::refill(double now) {
  const auto passed = std::max(now - refilled_.value_or(now), 0.0);
  capacity_ = std::min(max_capacity_, capacity_ + passed * fill_rate_);
  refilled_ = now;
}

Duration SendRate::acquire(Time now) {
  if (!enabled_) return Duration::zero();
  refill(seconds(now));
  const auto wait = (1 - capacity_) / fill_rate_;
  // A rounding error must not hold back an attempt whose timer fired on time.
  if (wait >= kNanosecond)
    return Duration(static_cast<Duration::rep>(std::ceil(wait / kNanosecond)));
  capacity_ = std::max(capacity_ - 1, 0.0);
  return Duration::zero();
}

// Counts a send. Once in each half second, adds the rate since the last time to the smoothed rate.
void SendRate::measure(double now) {
  const auto bucket = std::floor(now * kBucketsPerSecond) / kBucketsPerSecond;
  ++count_;
  if (bucket <= last_bucket_) return;
  const auto rate = static_cast<double>(count_) / (bucket - last_bucket_);
  measured_rate_ = kNewestWeight * rate + (1 - kNewestWeight) * measured_rate_;
  count_ = 0;
  last_bucket_ = bucket;
}

// Computes the rate at which sends may be made, after an attempt. A throttle reduces the rate at
// once, to 70 %. Otherwise the rate follows the curve of TCP's CUBIC (RFC 9438): it rises quickly
// to the rate at the last throttle, stays near it for a time (the plateau), and then rises ever
// faster. Sends are not limited before the first throttle. `throttled` says whether the server
// throttled this attempt. The algorithm and its numbers are botocore's.
void SendRate::update(Time time, bool throttled) {
  const auto now = seconds(time);
  measure(now);  // counts this attempt in `measured_rate_`, the rate at which sends were made
  double curve_rate = 0;
  if (throttled) {
    // The rate that was too high: the measured one, or the allowed one if that is lower.
    last_max_rate_ = enabled_ ? std::min(measured_rate_, fill_rate_) : measured_rate_;
    throttled_at_ = now;
    curve_rate = kReduction * last_max_rate_;
    enabled_ = true;
  } else {
    // Seconds since the middle of the plateau; negative before it.
    const auto after_plateau = now - throttled_at_ - plateau(last_max_rate_);
    curve_rate = kScale * after_plateau * after_plateau * after_plateau + last_max_rate_;
  }
  // The allowed rate is at most twice the one that the client really uses.
  const auto rate = std::min(curve_rate, 2 * measured_rate_);
  // The token bucket: each send takes one of `capacity_` tokens, which return at `fill_rate_`.
  refill(now);  // for the time until now, at the old rate
  fill_rate_ = std::max(rate, kMinFillRate);
  max_capacity_ = std::max(rate, kMinCapacity);  // the sends that may be made in a burst
  capacity_ = std::min(capacity_, max_capacity_);
}

}  // namespace httpretry
