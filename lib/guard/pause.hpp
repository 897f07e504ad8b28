// Pause: no send of one scope goes out until a time; then comes the ramp: first one at once, and
// one more with each response, so that their number doubles with each round. Where sends fail the
// server has enough: their number is halved, and grows by one a round from there on.
//
// A plain state machine, without clock and lock.
#pragma once

#include <httpretry/flow/shared_state.hpp>

#include <vector>

namespace httpretry::guard {

class HTTPRETRY_API Pause {
 public:
  // The server asks for it. Begins the ramp anew.
  void begin(Time until);
  // Whether a send may go out now: the pause is over, and the ramp has room.
  [[nodiscard]] bool allows(const PausePolicy& policy, Time now) const;
  // When it may change by itself; kNever where only the end of a send can change it.
  [[nodiscard]] Time next_change(Time now) const;
  // A send goes out; its number in the ramp, 0 outside of one.
  std::uint32_t enter(const PausePolicy& policy, Time now);
  // It has ended. Without `end`, or if that does not count, this says nothing about the server.
  void leave(std::uint32_t number, const SendEnd* end);
  // Nobody waits: the ramp is over.
  void end_ramp();
  // So is the pause.
  void end() { until_ = Time(), end_ramp(); }

  [[nodiscard]] Time until() const { return until_; }
  [[nodiscard]] bool in_ramp() const { return ramp_.width > 0; }
  // It is over, and sends have used the ramp, or none came for some time. Once no send waits or is
  // in flight, the ramp may end.
  [[nodiscard]] bool ramp_used(Time now) const;
  // As new.
  [[nodiscard]] bool idle(Time now) const { return until_ <= now && !in_ramp(); }

 private:
  struct Send {
    std::uint32_t number = 0;
    Time since{};
  };
  struct Ramp {
    std::uint32_t width = 0;          // sends that may be under way at once; 0: no ramp
    std::uint32_t doubles_until = 0;  // a width; 0: always
    std::uint32_t responses = 0;      // since it grew by one
    std::uint32_t halved_at = 0;      // the last send then
  };
  [[nodiscard]] std::size_t under_way(Time now) const;
  void widen();
  void halve();

  Time until_{};
  Ramp ramp_;
  bool entered_ = false;  // by a send, since it began
  std::uint32_t last_number_ = 0;
  std::vector<Send> sends_;  // of the ramp
};

}  // namespace httpretry::guard
