// HedgeState: what the sends of one scope teach about hedges: how long responses take, how many
// hedges the calls may have, whether the server wants fewer requests.
#pragma once

#include "window.hpp"

#include <httpretry/guard/shared_state.hpp>
#include <httpretry/retry/hedge_policy.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>

namespace httpretry::guard {

// From 0.1 ms to an hour.
inline constexpr std::size_t kBuckets = 175;

// The quantiles of the durations of the last 30 seconds, within 5 %. Its buckets grow by a constant
// factor, so a quantile of the same samples is the same everywhere.
class Sketch {
 public:
  void add(Duration sample, Time now);
  [[nodiscard]] std::uint32_t count(Time now) const;
  // `q` from 0 to 1. Empty without a sample.
  [[nodiscard]] std::optional<Duration> quantile(double q, Time now) const;

 private:
  static constexpr std::int64_t kSlots = 3;  // of 10 s
  struct Slot {
    std::int64_t number = -1;
    std::uint32_t count = 0;
    std::array<std::uint32_t, kBuckets> buckets{};
  };
  [[nodiscard]] static bool counts(const Slot& slot, Time now);

  std::array<Slot, static_cast<std::size_t>(kSlots)> slots_{};
};

// The hedges of the calls of the last ten seconds.
class HedgeBudget {
 public:
  void count_call(Time now) { add({1, 0, 0}, now); }
  // False: nothing was taken.
  bool take(double per_call, Time now) {
    if (left(per_call, now) < 1) return false;
    add({0, 1, 0}, now);
    return true;
  }
  // What was taken in an earlier second is given back in this one: the sum is the same.
  void give_back(Time now) { add({0, 0, 1}, now); }
  // Whole hedges; negative where a smaller budget came into force.
  [[nodiscard]] std::int64_t left(double per_call, Time now) const {
    return most(per_call, now) - hedges(now);
  }
  [[nodiscard]] std::int64_t most(double per_call, Time now) const {
    // A product such as 0.07 * 100 may be a little off.
    return static_cast<std::int64_t>(per_call * static_cast<double>(calls(now)) + 1e-9);
  }
  [[nodiscard]] std::int64_t calls(Time now) const { return window_.sum(now).all; }
  [[nodiscard]] std::int64_t hedges(Time now) const {
    const auto sum = window_.sum(now);
    return std::int64_t{sum.good} - sum.slow;
  }

 private:
  void add(const Counts& more, Time now) { window_.add(more, now, std::chrono::seconds(10)); }

  // Counts all calls, as `good` the hedges that were taken, and as `slow` those given back.
  Window window_;
};

class HedgeState final : public HedgeAccount {
 public:
  void begin_call(Time now) override {
    const std::lock_guard lock(mutex_);
    last_call_ = now;
    budget_.count_call(now);
  }
  void add_sample(Duration to_headers, Time now) override {
    const std::lock_guard lock(mutex_);
    sketch_.add(to_headers, now);
  }
  [[nodiscard]] HedgeDelay delay(const HedgePolicy& policy, Time now) override;
  [[nodiscard]] std::optional<Duration> median(Time now) override {
    const std::lock_guard lock(mutex_);
    return sketch_.quantile(0.5, now);
  }
  void throttle(Time until) override {
    const std::lock_guard lock(mutex_);
    throttled_until_ = std::max(throttled_until_, until);
  }
  [[nodiscard]] bool throttled(Time now) override {
    const std::lock_guard lock(mutex_);
    return now < throttled_until_;
  }
  bool take(const HedgePolicy& policy, Time now) override {
    const std::lock_guard lock(mutex_);
    return !policy.budget || budget_.take(*policy.budget, now);
  }
  void give_back(const HedgePolicy& policy, Time now) override {
    const std::lock_guard lock(mutex_);
    if (policy.budget) budget_.give_back(now);
  }
  // As new.
  [[nodiscard]] bool idle(Time now) {
    const std::lock_guard lock(mutex_);
    return now - last_call_ > std::chrono::seconds(30) && now >= throttled_until_;
  }
  void reset() {
    const std::lock_guard lock(mutex_);
    sketch_ = {};
    budget_ = {};
    throttled_until_ = {};
    last_call_ = {};
  }
  [[nodiscard]] ScopeState facts(const std::string& key, Time now);

 private:
  std::mutex mutex_;  // guards the next
  Sketch sketch_;
  HedgeBudget budget_;
  Time throttled_until_{};
  Time last_call_{};
};

// Hedge::from: "fixed", "p95 of 1043 samples", "initial".
[[nodiscard]] std::string source_text(const HedgePolicy& policy, const HedgeDelay& delay);

}  // namespace httpretry::guard
