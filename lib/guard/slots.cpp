#include "slots.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

constexpr Duration kLookEvery = std::chrono::seconds(1);
constexpr int kEnoughSamples = 10;

}  // namespace

int next_limit(const ConcurrencyPolicy& policy, int limit, bool dropped, int most_used) {
  if (dropped) {
    limit = static_cast<int>(limit * policy.backoff_ratio);
  } else if (2 * static_cast<std::int64_t>(most_used) >= limit) {
    ++limit;
  }
  return std::clamp(limit, policy.min, policy.max);
}

int Slots::limit(const ConcurrencyPolicy& policy) const {
  if (policy.kind == ConcurrencyPolicy::Kind::Fixed) return policy.max;
  return std::clamp(limit_ == 0 ? policy.initial : limit_, policy.min, policy.max);
}

bool Slots::free(const ConcurrencyPolicy& policy, bool low) const {
  const auto all = limit(policy);
  return used_ < (low ? std::max(all - all / 5, 1) : all);
}

void Slots::take() {
  ++used_;
  samples_.most_used = std::max(samples_.most_used, used_);
}

void Slots::learn(const ConcurrencyPolicy& policy, bool dropped, Time now) {
  if (policy.kind == ConcurrencyPolicy::Kind::Fixed) return;
  if (samples_.count++ == 0) samples_.since = now;
  samples_.dropped = samples_.dropped || dropped;
  if (samples_.count < kEnoughSamples && now - samples_.since < kLookEvery) return;
  limit_ = next_limit(policy, limit(policy), samples_.dropped, samples_.most_used);
  samples_ = {.most_used = used_};
}

}  // namespace httpretry::guard
