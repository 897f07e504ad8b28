// HedgeState: what the sends of one scope teach about hedges: how long responses take, how many
// hedges the calls may have, whether the server wants fewer requests. A plain state machine,
// without clock and lock.
#pragma once

#include "sketch.hpp"

#include <httpretry/flow/shared_state.hpp>
#include <httpretry/retry/hedge_policy.hpp>

namespace httpretry::guard {

// The hedges of the calls of the last ten seconds.
class HedgeBudget {
 public:
  void count_call(Time now) { ++at(now).calls; }
  // False: nothing was taken.
  bool take(double per_call, Time now);
  void give_back(Time now);
  // Whole hedges; negative where a smaller budget came into force.
  [[nodiscard]] std::int64_t left(double per_call, Time now) const;
  [[nodiscard]] std::int64_t most(double per_call, Time now) const;
  [[nodiscard]] std::int64_t calls(Time now) const { return sum(now).calls; }
  [[nodiscard]] std::int64_t hedges(Time now) const { return sum(now).hedges; }

 private:
  static constexpr std::int64_t kSeconds = 10;
  struct Second {
    std::int64_t number = -1;
    std::int32_t calls = 0;
    std::int32_t hedges = 0;
  };
  Second& at(Time now);
  [[nodiscard]] Second sum(Time now) const;

  std::array<Second, static_cast<std::size_t>(kSeconds)> seconds_{};
};

class HedgeState {
 public:
  void begin_call(Time now);
  [[nodiscard]] HedgeDelay delay(const HedgePolicy& policy, Time now);
  // Half of the responses take longer; empty where that is not known.
  [[nodiscard]] std::optional<Duration> median(Time now) const {
    return sketch_.quantile(0.5, now);
  }
  void add_sample(Duration to_headers, Time now) { sketch_.add(to_headers, now); }
  void throttle(Time until) { throttled_until_ = std::max(throttled_until_, until); }
  [[nodiscard]] bool throttled(Time now) const { return now < throttled_until_; }
  [[nodiscard]] Time throttled_until() const { return throttled_until_; }
  [[nodiscard]] std::uint32_t samples(Time now) const { return sketch_.count(now); }
  bool take(const HedgePolicy& policy, Time now);
  void give_back(Time now) { budget_.give_back(now); }
  [[nodiscard]] const HedgeBudget& budget() const { return budget_; }
  // As new.
  [[nodiscard]] bool idle(Time now) const;

 private:
  // The quantile as it was last read. It is read again when there are more samples by a part.
  struct Read {
    double quantile = 0;
    std::uint32_t count = 0;
    Time when{};
    Duration value{};
  };
  [[nodiscard]] Duration quantile(double q, std::uint32_t count, Time now);

  Sketch sketch_;
  HedgeBudget budget_;
  Time throttled_until_{};
  Time last_call_{};
  Read read_;
};

// Hedge::from: "fixed", "p95 of 1043 samples", "initial".
[[nodiscard]] std::string source_text(const HedgePolicy& policy, const HedgeDelay& delay);

}  // namespace httpretry::guard
