#include "pause.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

// A send that takes longer keeps nobody waiting.
constexpr Duration kHoldsPlace = std::chrono::seconds(5);

}  // namespace

void Pause::begin(Time until) {
  until_ = std::max(until_, until);
  width_ = 1;
  sends_.clear();  // what was sent before the pause says nothing about the time after it
}

std::size_t Pause::under_way(Time now) const {
  return static_cast<std::size_t>(std::count_if(sends_.begin(), sends_.end(), [&](const Send& one) {
    return now - one.since < kHoldsPlace;
  }));
}

bool Pause::allows(const PausePolicy& policy, Time now) const {
  if (now < until_) return false;
  return policy.resume == PausePolicy::Resume::All || width_ == 0 || under_way(now) < width_;
}

Time Pause::next_change(Time now) const {
  if (now < until_) return until_;
  auto next = kNever;
  for (const auto& one : sends_) {
    if (now - one.since < kHoldsPlace) next = std::min(next, one.since + kHoldsPlace);
  }
  return next;
}

std::uint32_t Pause::enter(const PausePolicy& policy, Time now) {
  if (width_ == 0 || policy.resume == PausePolicy::Resume::All) return 0;
  std::erase_if(sends_, [&](const Send& one) { return now - one.since >= kHoldsPlace; });
  sends_.push_back({++last_number_, now});
  return last_number_;
}

void Pause::leave(std::uint32_t number, bool responded) {
  if (number == 0) return;
  const auto removed = std::erase_if(sends_, [&](const Send& one) { return one.number == number; });
  // One more for each response: the width doubles with each round of responses.
  if (removed > 0 && responded) ++width_;
}

void Pause::end_ramp() {
  width_ = 0;
  sends_.clear();
}

}  // namespace httpretry::guard
