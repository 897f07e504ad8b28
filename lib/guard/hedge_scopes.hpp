// HedgeScopes: the HedgeStates of a process, one for each endpoint, host or policy.
#pragma once

#include "hedge_state.hpp"
#include "scopes.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::guard {

// A HedgeState that calls share.
class HedgeScope final : public HedgeAccount {
 public:
  void begin_call(Time now) override;
  void add_sample(Duration to_headers, Time now) override;
  [[nodiscard]] HedgeDelay delay(const HedgePolicy& policy, Time now) override;
  [[nodiscard]] std::optional<Duration> median(Time now) override;
  void throttle(Time until) override;
  [[nodiscard]] bool throttled(Time now) override;
  bool take(const HedgePolicy& policy, Time now) override;
  void give_back(const HedgePolicy& policy, Time now) override;
  [[nodiscard]] bool idle(Time now);
  void reset();
  // Without its key.
  [[nodiscard]] ScopeState facts(Time now);

 private:
  std::mutex mutex_;
  HedgeState state_;
};

// Bounded: those that no call uses are dropped, first those that are as new.
class HedgeScopes {
 public:
  std::shared_ptr<HedgeScope> at(const std::string& key, Time now);
  // As new. False where there is no such key.
  bool reset(const std::string& key);
  // Those whose keys begin like that.
  [[nodiscard]] std::vector<ScopeState> states(std::string_view prefix, Time now) const;

  // 2.5 KiB each.
  static constexpr std::size_t kMaxScopes = 4096;

 private:
  mutable std::mutex mutex_;  // guards the next
  Scopes<HedgeScope> scopes_{kMaxScopes};
};

}  // namespace httpretry::guard
