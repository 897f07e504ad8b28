// HedgedAttempt: the reasons not to send a hedge.
#include "hedged_attempt.hpp"

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/detail/call_state.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

// Returns the reason for a hedge that this limit would hold back.
HedgeRefused refusal_of(QueuedBy held_by) {
  if (held_by == QueuedBy::Pause || held_by == QueuedBy::Ramp) return HedgeRefused::Throttled;
  return held_by == QueuedBy::Circuit ? HedgeRefused::Circuit : HedgeRefused::Busy;
}

}  // namespace

// Returns why the next hedge must not go out, the first reason in the order of HedgeRefused.
// Returns nullopt if it may go out, and then has taken it from the budgets for hedges and for
// retries. Otherwise takes nothing.
std::optional<HedgeRefused> HedgedAttempt::refusal() {
  if (const auto reason = lasting_refusal()) return reason;
  if (is_too_late()) return HedgeRefused::Deadline;
  if (throttled_ || scope_.throttled(now())) return HedgeRefused::Throttled;
  for (auto* gate : gates_) {
    const auto held_by = gate->would_hold(request_, call_);
    if (held_by != QueuedBy::Nothing) return refusal_of(held_by);
  }
  if (delay_.refused) return delay_.refused;
  if (!scope_.take(policy_, now())) return HedgeRefused::HedgeBudget;
  const auto reason = attempt_.loop.claim().take_hedge(now());
  if (reason) scope_.give_back(policy_, now());
  return reason;
}

// Returns why this attempt must not be hedged at all, now or later, or nullopt if it may be. A
// hedge is a second send of the request, made while the first one has no response.
std::optional<HedgeRefused> HedgedAttempt::lasting_refusal() const {
  const auto& methods = policy_.methods;
  const bool allows_method =
      methods.empty() || std::ranges::find(methods, request_.method()) != methods.end();
  if (!allows_method) return HedgeRefused::Method;
  if (!may_execute_twice(*attempt_.policy, request_.repeatable())) {
    return HedgeRefused::UnsafeToRepeat;
  }
  // An earlier attempt may have written a part of its response to the sink (where a body goes that
  // does not stay in memory). The response of a hedge cannot replace that part.
  const auto* delivery = request_.options().sink ? Delivery::if_open(call_) : nullptr;
  const bool sink_has_bytes = delivery != nullptr && delivery->has_bytes();
  // A shareable body can be read by two sends at once. `may_be_hedged` is false for a part of a
  // resumable upload: a second send must first ask the server how much it has.
  if (sink_has_bytes || !request_.body().shareable() || !attempt_.may_be_hedged) {
    return HedgeRefused::NotReplayable;
  }
  const auto hedges_sent = static_cast<int>(sends_.size()) - 1;
  // How many hedges max_attempts allows in this attempt, sent ones included; nullopt: no limit.
  const auto most_hedges = attempt_.loop.sends_left();
  const bool too_many = most_hedges && hedges_sent >= *most_hedges;
  return too_many ? std::optional(HedgeRefused::Attempts) : std::nullopt;
}

// Returns whether less time is left for a hedge than the median response takes, or none because
// stop was requested.
bool HedgedAttempt::is_too_late() const {
  const auto end = std::min(call_.deadline(), call_.limits(request_).respond_by);
  if (end == kNever) return false;
  const auto median = scope_.median(now()).value_or(Duration::zero());
  return end <= now() || end - now() < median || call_.stop().stop_requested();
}

}  // namespace httpretry::guard
