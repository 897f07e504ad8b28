// HedgeState: the measurements of one scope that decide about hedges. They are how long responses
// take, how many hedges the calls may have, and whether the server wants fewer requests.
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

// Computes quantiles of the durations of the last 30 seconds, with an error of at most 5 %. Its
// buckets grow by a constant factor, so the same samples have the same quantiles in any process.
class Sketch {
 public:
  void add(Duration sample, Time now);
  [[nodiscard]] std::uint32_t count(Time now) const;
  // Returns the quantile `q`, from 0 to 1, or nullopt without samples.
  [[nodiscard]] std::optional<Duration> quantile(double q, Time now) const;

 private:
  static constexpr std::int64_t kSlots = 3;  // 10 s each
  struct Slot {
    std::int64_t number = -1;
    std::uint32_t count = 0;
    std::array<std::uint32_t, kBuckets> buckets{};
  };
  [[nodiscard]] static bool is_recent(const Slot& slot, Time now);

  std::array<Slot, static_cast<std::size_t>(kSlots)> slots_{};
};

// Counts the calls of the last ten seconds and their hedges.
class HedgeBudget {
 public:
  void count_call(Time now) { add({1, 0, 0}, now); }
  // Takes a hedge. Returns false if the budget has none left.
  bool take(double per_call, Time now) {
    if (left(per_call, now) < 1) return false;
    add({0, 1, 0}, now);
    return true;
  }
  // Gives a hedge back. This counts in the current second, even if the hedge was taken earlier: the
  // sum is the same.
  void give_back(Time now) { add({0, 0, 1}, now); }
  // Returns how many hedges are left. Negative after the budget was made smaller.
  [[nodiscard]] std::int64_t left(double per_call, Time now) const {
    return most(per_call, now) - hedges(now);
  }
  [[nodiscard]] std::int64_t most(double per_call, Time now) const {
    // 1e-9 makes up for rounding errors in products such as 0.07 * 100.
    return static_cast<std::int64_t>(per_call * static_cast<double>(calls(now)) + 1e-9);
  }
  [[nodiscard]] std::int64_t calls(Time now) const { return window_.sum(now).all; }
  [[nodiscard]] std::int64_t hedges(Time now) const {
    const auto sum = window_.sum(now);
    return std::int64_t{sum.good} - sum.slow;
  }

 private:
  void add(const Counts& more, Time now) { window_.add(more, now, std::chrono::seconds(10)); }

  // `all` counts the calls, `good` the hedges taken, and `slow` the hedges given back.
  Window window_;
};

// The HedgeAccount of one scope, in memory. Thread-safe.
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
  // Returns whether dropping this state loses nothing.
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
  std::mutex mutex_;  // guards the rest
  Sketch sketch_;
  HedgeBudget budget_;
  Time throttled_until_{};
  Time last_call_{};
};

// Returns the text for Hedge::from: "fixed", "initial", or for example "p95 of 1043 samples".
[[nodiscard]] std::string source_text(const HedgePolicy& policy, const HedgeDelay& delay);

}  // namespace httpretry::guard
