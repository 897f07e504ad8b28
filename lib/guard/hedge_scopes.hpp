// HedgeScopes: the HedgeStates of a client, one for each endpoint, host or policy.
#pragma once

#include "hedge_state.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace httpretry::guard {

// A HedgeState that calls share. Each function is one atomic step, with plain values in and out.
class HedgeScope {
 public:
  void begin_call(Time now);
  [[nodiscard]] HedgeDelay delay(const HedgePolicy& policy, Time now);
  [[nodiscard]] std::optional<Duration> median(Time now);
  void add_sample(Duration to_headers, Time now);
  void throttle(Time until);
  [[nodiscard]] bool throttled(Time now);
  bool take(const HedgePolicy& policy, Time now);
  void give_back(const HedgePolicy& policy, Time now);
  [[nodiscard]] bool idle(Time now);

 private:
  std::mutex mutex_;
  HedgeState state_;
};

// Bounded: those that no call uses are dropped, first those that are as new.
class HedgeScopes {
 public:
  std::shared_ptr<HedgeScope> at(const std::string& key, Time now);

  // 2.5 KiB each.
  static constexpr std::size_t kMaxScopes = 4096;

 private:
  void make_room(Time now);

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<HedgeScope>> scopes_;
};

}  // namespace httpretry::guard
