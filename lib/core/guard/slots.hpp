// Slots: limits how many sends of one scope are in flight. The limit is fixed, or adapts to how the
// sends end. A plain state machine, without clock and lock.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

#include <algorithm>

namespace httpretry::guard {

// Returns the limit after some sends have ended. `dropped`: one of them shows that the server was
// overloaded. The limit grows only if at least half of it was in use.
[[nodiscard]] inline int next_limit(const ConcurrencyPolicy& policy, int limit, bool dropped,
                                    int most_used) {
  if (dropped) {
    limit = static_cast<int>(limit * policy.backoff_ratio);
  } else if (2 * static_cast<std::int64_t>(most_used) >= limit) {
    ++limit;
  }
  return std::clamp(limit, policy.min, policy.max);
}

class Slots {
 public:
  [[nodiscard]] int limit(const ConcurrencyPolicy& policy) const {
    if (policy.kind == ConcurrencyPolicy::Kind::Fixed) return policy.max;
    return std::clamp(limit_ == 0 ? policy.initial : limit_, policy.min, policy.max);
  }
  [[nodiscard]] int used() const { return used_; }
  // Returns whether a send may take a slot. Sends of low priority leave a fifth of the slots to
  // others, but may always use one.
  [[nodiscard]] bool free(const ConcurrencyPolicy& policy, bool low) const {
    const auto all = limit(policy);
    return used_ < (low ? std::max(all - all / 5, 1) : all);
  }
  void take() {
    ++used_;
    samples_.most_used = std::max(samples_.most_used, used_);
  }
  void give_back() { --used_; }
  // Adapts the limit to how a send ended. `dropped`: it was throttled or failed in transport, for
  // example with a timeout.
  void adapt(const ConcurrencyPolicy& policy, bool dropped, Time now) {
    if (policy.kind == ConcurrencyPolicy::Kind::Fixed) return;
    if (samples_.count++ == 0) samples_.since = now;
    samples_.dropped = samples_.dropped || dropped;
    if (samples_.count < kEnoughSamples && now - samples_.since < kAdaptEvery) return;
    limit_ = next_limit(policy, limit(policy), samples_.dropped, samples_.most_used);
    samples_ = {.most_used = used_};
  }
  // Resets the limit to its initial value.
  void reset_limit() { limit_ = 0, samples_ = {.most_used = used_}; }
  // Returns whether this is in its initial state.
  [[nodiscard]] bool idle(Time /*now*/) const { return used_ == 0 && limit_ == 0; }

 private:
  static constexpr Duration kAdaptEvery = std::chrono::seconds(1);
  static constexpr int kEnoughSamples = 10;
  // The samples since the limit was last adapted.
  struct Samples {
    Time since{};
    int count = 0;
    int most_used = 0;
    bool dropped = false;
  };

  int used_ = 0;
  int limit_ = 0;  // for Kind::Aimd; 0: policy.initial
  Samples samples_;
};

}  // namespace httpretry::guard
