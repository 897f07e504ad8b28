#include "pause.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

// A send that takes longer keeps nobody waiting.
constexpr Duration kHoldsPlace = std::chrono::seconds(5);
// The ramp waits that long for its first send.
constexpr Duration kFirstSend = std::chrono::seconds(5);

}  // namespace

void Pause::begin(Time until) {
  until_ = std::max(until_, until);
  ramp_ = {.width = 1, .halved_at = last_number_};
  sends_.clear();  // what was sent before the pause says nothing about the time after it
  entered_ = false;
}

std::size_t Pause::under_way(Time now) const {
  return static_cast<std::size_t>(std::count_if(sends_.begin(), sends_.end(), [&](const Send& one) {
    return now - one.since < kHoldsPlace;
  }));
}

bool Pause::allows(const PausePolicy& policy, Time now) const {
  if (now < until_) return false;
  return policy.resume == PausePolicy::Resume::All || !in_ramp() || under_way(now) < ramp_.width;
}

Time Pause::next_change(Time now) const {
  if (now < until_) return until_;
  auto next = kNever;
  for (const auto& one : sends_) {
    if (now - one.since < kHoldsPlace) next = std::min(next, one.since + kHoldsPlace);
  }
  return next;
}

bool Pause::ramp_used(Time now) const {
  return now >= until_ && (entered_ || now - until_ >= kFirstSend);
}

std::uint32_t Pause::enter(const PausePolicy& policy, Time now) {
  entered_ = true;
  if (!in_ramp() || policy.resume == PausePolicy::Resume::All) return 0;
  std::erase_if(sends_, [&](const Send& one) { return now - one.since >= kHoldsPlace; });
  sends_.push_back({++last_number_, now});
  return last_number_;
}

void Pause::leave(std::uint32_t number, const SendEnd* end) {
  const auto removed = std::erase_if(sends_, [&](const Send& one) { return one.number == number; });
  if (removed == 0 || end == nullptr || !end->counts) return;
  if (end->responded) widen();
  // Those that were sent before it was halved were too many already.
  if (!end->responded && number > ramp_.halved_at) halve();
}

void Pause::widen() {
  const bool doubles = ramp_.doubles_until == 0 || ramp_.width < ramp_.doubles_until;
  if (!doubles && ++ramp_.responses < ramp_.width) return;
  ++ramp_.width;
  ramp_.responses = 0;
}

// A single send that fails says nothing about how many the server can do.
void Pause::halve() {
  ramp_.halved_at = last_number_;
  if (ramp_.width == 1) return;
  ramp_.width /= 2;
  ramp_.doubles_until = std::max(ramp_.width, 2U);
  ramp_.responses = 0;
}

void Pause::end_ramp() {
  ramp_ = {};
  sends_.clear();
}

}  // namespace httpretry::guard
