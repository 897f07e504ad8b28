// HedgeState: what the sends of one scope teach about hedges: how long responses take, how many
// hedges the calls may have, whether the server wants fewer requests.
#pragma once

#include "sketch.hpp"
#include "window.hpp"

#include <httpretry/flow/shared_state.hpp>
#include <httpretry/retry/hedge_policy.hpp>

#include <mutex>
#include <string>

namespace httpretry::guard {

// The hedges of the calls of the last ten seconds.
class HedgeBudget {
 public:
  void count_call(Time now) { add({1, 0, 0}, now); }
  // False: nothing was taken.
  bool take(double per_call, Time now);
  // What was taken in an earlier second is given back in this one: the sum is the same.
  void give_back(Time now) { add({0, 0, 1}, now); }
  // Whole hedges; negative where a smaller budget came into force.
  [[nodiscard]] std::int64_t left(double per_call, Time now) const;
  [[nodiscard]] std::int64_t most(double per_call, Time now) const;
  [[nodiscard]] std::int64_t calls(Time now) const { return window_.sum(now).all; }
  [[nodiscard]] std::int64_t hedges(Time now) const;

 private:
  void add(const Counts& more, Time now) { window_.add(more, now, std::chrono::seconds(10)); }

  // Counts all calls, as `good` the hedges that were taken, and as `slow` those given back.
  Window window_;
};

class HedgeState final : public HedgeAccount {
 public:
  void begin_call(Time now) override;
  void add_sample(Duration to_headers, Time now) override;
  [[nodiscard]] HedgeDelay delay(const HedgePolicy& policy, Time now) override;
  [[nodiscard]] std::optional<Duration> median(Time now) override;
  void throttle(Time until) override;
  [[nodiscard]] bool throttled(Time now) override;
  bool take(const HedgePolicy& policy, Time now) override;
  void give_back(const HedgePolicy& policy, Time now) override;
  // As new.
  [[nodiscard]] bool idle(Time now);
  void reset();
  [[nodiscard]] ScopeState facts(const std::string& key, Time now);

 private:
  // The quantile as it was last read. It is read again when there are more samples by a part.
  struct Read {
    double quantile = 0;
    std::uint32_t count = 0;
    Time when{};
    Duration value{};
  };
  // With the mutex held.
  [[nodiscard]] Duration quantile(double q, std::uint32_t count, Time now);

  std::mutex mutex_;  // guards the next
  Sketch sketch_;
  HedgeBudget budget_;
  Time throttled_until_{};
  Time last_call_{};
  Read read_;
};

// Hedge::from: "fixed", "p95 of 1043 samples", "initial".
[[nodiscard]] std::string source_text(const HedgePolicy& policy, const HedgeDelay& delay);

}  // namespace httpretry::guard
