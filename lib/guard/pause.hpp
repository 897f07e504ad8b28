// Pause: no send of one scope goes out until a time; then a few, and more with each response. A
// plain state machine, without clock and lock.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

#include <vector>

namespace httpretry::guard {

class Pause {
 public:
  // The server asks for it. Begins the ramp anew.
  void begin(Time until);
  // Whether a send may go out now: the pause is over, and the ramp has room.
  [[nodiscard]] bool allows(const PausePolicy& policy, Time now) const;
  // When it may change by itself; kNever where only the end of a send can change it.
  [[nodiscard]] Time next_change(Time now) const;
  // A send goes out; its number in the ramp, 0 outside of one.
  std::uint32_t enter(const PausePolicy& policy, Time now);
  // It has ended. A response that is no throttle makes room for more.
  void leave(std::uint32_t number, bool responded);
  // Nobody waits: the ramp is over.
  void end_ramp();
  // So is the pause.
  void end() { until_ = Time(), end_ramp(); }

  [[nodiscard]] Time until() const { return until_; }
  [[nodiscard]] bool in_ramp() const { return width_ > 0; }
  // As new.
  [[nodiscard]] bool idle(Time now) const { return until_ <= now && width_ == 0; }

 private:
  struct Send {
    std::uint32_t number = 0;
    Time since{};
  };
  [[nodiscard]] std::size_t under_way(Time now) const;

  Time until_{};
  std::uint32_t width_ = 0;  // sends that may be under way at once; 0: no ramp
  std::uint32_t last_number_ = 0;
  std::vector<Send> sends_;  // of the ramp
};

}  // namespace httpretry::guard
