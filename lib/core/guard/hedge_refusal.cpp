// HedgedAttempt: the reasons not to send a hedge.
#include "hedged_attempt.hpp"

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/detail/call_state.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

HedgeRefused refusal_of(QueuedBy by) {
  if (by == QueuedBy::Pause || by == QueuedBy::Ramp) return HedgeRefused::Throttled;
  return by == QueuedBy::Circuit ? HedgeRefused::Circuit : HedgeRefused::Busy;
}

}  // namespace

// Checks the reasons in the order of HedgeRefused. Returns nullopt if the hedge may go out, and
// then has taken it from both budgets. Otherwise takes nothing.
std::optional<HedgeRefused> HedgedAttempt::refusal() {
  if (const auto why = lasting_refusal()) return why;
  if (is_too_late()) return HedgeRefused::Deadline;
  if (throttled_ || scope_.throttled(now())) return HedgeRefused::Throttled;
  for (auto* gate : gates_) {
    const auto by = gate->would_hold(request_, call_);
    if (by != QueuedBy::Nothing) return refusal_of(by);
  }
  if (delay_.refused) return delay_.refused;
  if (!scope_.take(policy_, now())) return HedgeRefused::HedgeBudget;
  const auto why = attempt_.loop.claim().take_hedge(now());
  if (why) scope_.give_back(policy_, now());
  return why;
}

// Returns a reason that time does not remove.
std::optional<HedgeRefused> HedgedAttempt::lasting_refusal() const {
  const auto& methods = policy_.methods;
  if (!methods.empty() &&
      std::find(methods.begin(), methods.end(), request_.method()) == methods.end()) {
    return HedgeRefused::Method;
  }
  if (!may_execute_twice(*attempt_.policy, request_.repeatable())) {
    return HedgeRefused::UnsafeToRepeat;
  }
  const auto* delivery = request_.options().sink ? Delivery::begun(call_) : nullptr;
  const bool begun = delivery != nullptr && delivery->has_bytes();
  if (begun || !request_.body().shareable() || !attempt_.may_be_hedged) {
    return HedgeRefused::NotReplayable;
  }
  const auto sends = static_cast<int>(sends_.size()) - 1;
  const auto left = attempt_.loop.sends_left();
  return left && sends >= *left ? std::optional(HedgeRefused::Attempts) : std::nullopt;
}

// Returns whether less time is left than the median response takes.
bool HedgedAttempt::is_too_late() const {
  const auto end = std::min(call_.deadline(), call_.limits(request_).respond_by);
  if (end == kNever) return false;
  const auto median = scope_.median(now()).value_or(Duration::zero());
  return end <= now() || end - now() < median || call_.stop().stop_requested();
}

}  // namespace httpretry::guard
