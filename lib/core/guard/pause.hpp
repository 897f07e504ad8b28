// Pause: lets no send of one scope out until a given time. Then the ramp begins, a slow start. At
// first one send may be in flight, and one more after each response, so the number doubles with
// each round. If a send fails, the ramp halves the number, and from then on adds one in each round.
//
// A plain state machine, without clock and lock.
#pragma once

#include <httpretry/guard/shared_state.hpp>

#include <algorithm>
#include <vector>

namespace httpretry::guard {

class Pause {
 public:
  // Begins a pause that the server asked for, or extends it. The ramp restarts.
  void begin(Time until) {
    until_ = std::max(until_, until);
    ramp_ = {.width = 1, .halved_at = last_number_};
    sends_.clear();  // sends from before the pause say nothing about the time after it
    entered_ = false;
  }
  // Returns whether a send may go out now: the pause is over, and the ramp allows one more.
  [[nodiscard]] bool allows(const PausePolicy& policy, Time now) const {
    if (now < until_) return false;
    const auto in_flight = std::count_if(sends_.begin(), sends_.end(),
                                         [&](const Send& one) { return holds_place(one, now); });
    return policy.resume == PausePolicy::Resume::All || !in_ramp() || in_flight < ramp_.width;
  }
  // Returns when the result of `allows` may change by itself, or kNever if only the end of a send
  // can change it.
  [[nodiscard]] Time next_change(Time now) const {
    if (now < until_) return until_;
    auto next = kNever;
    for (const auto& one : sends_) {
      if (holds_place(one, now)) next = std::min(next, one.since + kHoldsPlace);
    }
    return next;
  }
  // Records a send. Returns its number in the ramp, or 0 if no ramp limits it.
  std::uint32_t enter(const PausePolicy& policy, Time now) {
    entered_ = true;
    if (!in_ramp() || policy.resume == PausePolicy::Resume::All) return 0;
    std::erase_if(sends_, [&](const Send& one) { return !holds_place(one, now); });
    sends_.push_back({++last_number_, now});
    return last_number_;
  }
  // Records the end of a send. Without `end`, or if it does not count, the ramp does not change.
  void leave(std::uint32_t number, const SendEnd* end) {
    const auto left = std::erase_if(sends_, [&](const Send& one) { return one.number == number; });
    if (left == 0 || end == nullptr || !end->counts) return;
    if (end->responded) widen();
    // Failures of sends from before the last halving do not halve the ramp again.
    if (!end->responded && number > ramp_.halved_at) halve();
  }
  void end_ramp() { ramp_ = {}, sends_.clear(); }
  // Ends the pause and its ramp.
  void end() { until_ = Time(), end_ramp(); }

  [[nodiscard]] Time until() const { return until_; }
  [[nodiscard]] bool in_ramp() const { return ramp_.width > 0; }
  // Returns whether the ramp may end once no send waits or is in flight. The pause must be over,
  // and a send must have used the ramp, unless none came for 5 s.
  [[nodiscard]] bool ramp_used(Time now) const {
    return now >= until_ && (entered_ || now - until_ >= kFirstSend);
  }
  // Returns whether this is in its initial state.
  [[nodiscard]] bool idle(Time now) const { return until_ <= now && !in_ramp(); }

 private:
  // How long a send counts as in flight. A slower one does not hold back the others.
  static constexpr Duration kHoldsPlace = std::chrono::seconds(5);
  // How long the ramp waits for its first send.
  static constexpr Duration kFirstSend = std::chrono::seconds(5);
  struct Send {
    std::uint32_t number = 0;
    Time since{};
  };
  struct Ramp {
    std::uint32_t width = 0;          // how many sends may be in flight; 0: no ramp
    std::uint32_t doubles_until = 0;  // the width up to which it doubles; 0: no limit
    std::uint32_t responses = 0;      // since the width last grew by one
    std::uint32_t halved_at = 0;      // the number of the latest send at the last halving
  };
  static bool holds_place(const Send& send, Time now) { return now - send.since < kHoldsPlace; }
  void widen() {
    const bool doubles = ramp_.doubles_until == 0 || ramp_.width < ramp_.doubles_until;
    if (!doubles && ++ramp_.responses < ramp_.width) return;
    ++ramp_.width;
    ramp_.responses = 0;
  }
  // Halves the width. A width of 1 stays: the failure of a single send does not show how many sends
  // the server can handle.
  void halve() {
    ramp_.halved_at = last_number_;
    if (ramp_.width == 1) return;
    ramp_.width /= 2;
    ramp_.doubles_until = std::max(ramp_.width, 2U);
    ramp_.responses = 0;
  }

  Time until_{};
  Ramp ramp_;
  bool entered_ = false;  // a send has gone out since the pause began
  std::uint32_t last_number_ = 0;
  std::vector<Send> sends_;  // sends of the ramp in flight
};

}  // namespace httpretry::guard
