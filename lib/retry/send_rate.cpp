#include <httpretry/retry/budget.hpp>

#include "lib/retry/saturating.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry {
namespace {

// From botocore's retries/ (adaptive.py, bucket.py, throttling.py).
constexpr double kMinFillRate = 0.5;
constexpr double kMinCapacity = 1;
constexpr double kSmooth = 0.8;
constexpr double kBeta = 0.7;
constexpr double kScale = 0.4;
constexpr double kBucketsPerSecond = 2;
constexpr double kNanosecond = 1e-9;

// How long after a throttle the curve is back at the rate that caused it: CUBIC's K, RFC 9438.
double plateau(double last_max_rate) { return std::cbrt(last_max_rate * (1 - kBeta) / kScale); }

}  // namespace

SendRate::SendRate(Time start) : start_(start) {}

double SendRate::seconds(Time now) const {
  return static_cast<double>(policy::between(start_, now).count()) * kNanosecond;
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

void SendRate::measure(double now) {
  const auto bucket = std::floor(now * kBucketsPerSecond) / kBucketsPerSecond;
  ++count_;
  if (bucket <= last_bucket_) return;
  const auto rate = static_cast<double>(count_) / (bucket - last_bucket_);
  measured_rate_ = kSmooth * rate + (1 - kSmooth) * measured_rate_;
  count_ = 0;
  last_bucket_ = bucket;
}

void SendRate::update(Time time, bool throttled) {
  const auto now = seconds(time);
  measure(now);
  double calculated = 0;
  if (throttled) {
    last_max_rate_ = enabled_ ? std::min(measured_rate_, fill_rate_) : measured_rate_;
    throttled_at_ = now;
    calculated = kBeta * last_max_rate_;
    enabled_ = true;
  } else {
    const auto since = now - throttled_at_ - plateau(last_max_rate_);
    calculated = kScale * since * since * since + last_max_rate_;
  }
  const auto rate = std::min(calculated, 2 * measured_rate_);
  refill(now);
  fill_rate_ = std::max(rate, kMinFillRate);
  max_capacity_ = std::max(rate, kMinCapacity);
  capacity_ = std::min(capacity_, max_capacity_);
}

}  // namespace httpretry
