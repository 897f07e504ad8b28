// Pause: no send of one scope goes out until a time; then comes the ramp: first one at once, and
// one more with each response, so that their number doubles with each round. Where sends fail the
// server has enough: their number is halved, and grows by one a round from there on.
//
// A plain state machine, without clock and lock.
#pragma once

#include <httpretry/guard/shared_state.hpp>

#include <algorithm>
#include <vector>

namespace httpretry::guard {

class Pause {
 public:
  // The server asks for it. Begins the ramp anew.
  void begin(Time until) {
    until_ = std::max(until_, until);
    ramp_ = {.width = 1, .halved_at = last_number_};
    sends_.clear();  // what was sent before the pause says nothing about the time after it
    entered_ = false;
  }
  // Whether a send may go out now: the pause is over, and the ramp has room.
  [[nodiscard]] bool allows(const PausePolicy& policy, Time now) const {
    if (now < until_) return false;
    const auto under_way = std::count_if(sends_.begin(), sends_.end(),
                                         [&](const Send& one) { return holds_place(one, now); });
    return policy.resume == PausePolicy::Resume::All || !in_ramp() || under_way < ramp_.width;
  }
  // When it may change by itself; kNever where only the end of a send can change it.
  [[nodiscard]] Time next_change(Time now) const {
    if (now < until_) return until_;
    auto next = kNever;
    for (const auto& one : sends_) {
      if (holds_place(one, now)) next = std::min(next, one.since + kHoldsPlace);
    }
    return next;
  }
  // A send goes out; its number in the ramp, 0 outside of one.
  std::uint32_t enter(const PausePolicy& policy, Time now) {
    entered_ = true;
    if (!in_ramp() || policy.resume == PausePolicy::Resume::All) return 0;
    std::erase_if(sends_, [&](const Send& one) { return !holds_place(one, now); });
    sends_.push_back({++last_number_, now});
    return last_number_;
  }
  // It has ended. Without `end`, or if that does not count, this says nothing about the server.
  void leave(std::uint32_t number, const SendEnd* end) {
    const auto left = std::erase_if(sends_, [&](const Send& one) { return one.number == number; });
    if (left == 0 || end == nullptr || !end->counts) return;
    if (end->responded) widen();
    // Those that were sent before it was halved were too many already.
    if (!end->responded && number > ramp_.halved_at) halve();
  }
  // Nobody waits: the ramp is over.
  void end_ramp() { ramp_ = {}, sends_.clear(); }
  // So is the pause.
  void end() { until_ = Time(), end_ramp(); }

  [[nodiscard]] Time until() const { return until_; }
  [[nodiscard]] bool in_ramp() const { return ramp_.width > 0; }
  // It is over, and sends have used the ramp, or none came for some time. Once no send waits or is
  // in flight, the ramp may end.
  [[nodiscard]] bool ramp_used(Time now) const {
    return now >= until_ && (entered_ || now - until_ >= kFirstSend);
  }
  // As new.
  [[nodiscard]] bool idle(Time now) const { return until_ <= now && !in_ramp(); }

 private:
  // A send that takes longer keeps nobody waiting.
  static constexpr Duration kHoldsPlace = std::chrono::seconds(5);
  // The ramp waits that long for its first send.
  static constexpr Duration kFirstSend = std::chrono::seconds(5);
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
  static bool holds_place(const Send& send, Time now) { return now - send.since < kHoldsPlace; }
  void widen() {
    const bool doubles = ramp_.doubles_until == 0 || ramp_.width < ramp_.doubles_until;
    if (!doubles && ++ramp_.responses < ramp_.width) return;
    ++ramp_.width;
    ramp_.responses = 0;
  }
  // A single send that fails says nothing about how many the server can do.
  void halve() {
    ramp_.halved_at = last_number_;
    if (ramp_.width == 1) return;
    ramp_.width /= 2;
    ramp_.doubles_until = std::max(ramp_.width, 2U);
    ramp_.responses = 0;
  }

  Time until_{};
  Ramp ramp_;
  bool entered_ = false;  // by a send, since it began
  std::uint32_t last_number_ = 0;
  std::vector<Send> sends_;  // of the ramp
};

}  // namespace httpretry::guard
