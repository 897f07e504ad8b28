#include "rate.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

Duration interval(const RatePolicy& policy) {
  return std::max(policy.per / policy.requests, Duration(1));
}

}  // namespace

Time Rate::ready_at(const RatePolicy& policy, std::int64_t count) const {
  if (count > policy.burst) return kNever;
  return full_at_ - (policy.burst - count) * interval(policy);
}

void Rate::take(const RatePolicy& policy, Time now, std::int64_t count) {
  full_at_ = std::max(full_at_, now) + count * interval(policy);
}

std::int64_t Rate::left(const RatePolicy& policy, Time now) const {
  const auto missing = std::max(full_at_ - now, Duration::zero());
  const auto each = interval(policy);
  return std::max<std::int64_t>(policy.burst - (missing + each - Duration(1)) / each, 0);
}

}  // namespace httpretry::guard
