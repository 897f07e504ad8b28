// Slots: how many sends of one scope run at once. The limit is fixed, or follows how the sends end.
// A plain state machine, without clock and lock.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

namespace httpretry::guard {

class HTTPRETRY_API Slots {
 public:
  [[nodiscard]] int limit(const ConcurrencyPolicy& policy) const;
  [[nodiscard]] int used() const { return used_; }
  // Sends of low priority leave a fifth of the slots to others, but have one at least.
  [[nodiscard]] bool free(const ConcurrencyPolicy& policy, bool low) const;
  void take();
  void give_back() { --used_; }
  // How a send ended. `dropped`: throttled, timed out, failed in transport.
  void learn(const ConcurrencyPolicy& policy, bool dropped, Time now);
  // What it has learned is forgotten.
  void forget() { limit_ = 0, samples_ = {.most_used = used_}; }
  // As new.
  [[nodiscard]] bool idle(Time /*now*/) const { return used_ == 0 && limit_ == 0; }

 private:
  // The samples since the limit was last looked at.
  struct Samples {
    Time since{};
    int count = 0;
    int most_used = 0;
    bool dropped = false;
  };

  int used_ = 0;
  int limit_ = 0;  // Aimd; 0: policy.initial
  Samples samples_;
};

// The limit after some sends. It grows only where it was used.
[[nodiscard]] int next_limit(const ConcurrencyPolicy& policy, int limit, bool dropped,
                             int most_used);

}  // namespace httpretry::guard
