#include <httpretry/retry/decide.hpp>

#include "lib/core/base/saturating.hpp"

#include <algorithm>
#include <cstdint>

namespace httpretry {
namespace {

using namespace std::chrono_literals;
using namespace saturating;

// A saturated time is at the end of Duration's range.
std::string wait_text(Duration time) {
  return time == kForever ? "292 years or more" : duration_text(time);
}

// The limit that a retry would exceed, or None. Its value is a time or a count.
struct Exceeded {
  Limit limit = Limit::None;
  Duration time{};
  Duration excess{};  // by how much a retry would exceed `time`
  int count = 0;
  explicit operator bool() const { return limit != Limit::None; }
};

// Returns the backoff for failures of this class.
const Backoff& backoff_for(const RetryPolicy& policy, Class cls) {
  static const PendingRule kDefaultPending;
  if (cls == Class::Pending) {
    return policy.retry_on.pending ? policy.retry_on.pending->backoff : kDefaultPending.backoff;
  }
  return cls == Class::Throttle && policy.throttle_backoff ? *policy.throttle_backoff
                                                           : policy.backoff;
}

// Returns the limit on the number of attempts or polls that is reached, or None.
Exceeded attempts_limit(const RetryPolicy& policy, Class cls, const RetryState& state) {
  if (cls == Class::Pending) {
    const auto& pending = policy.retry_on.pending;
    if (!pending || !pending->max || state.polls < *pending->max) return {};
    return {.limit = Limit::MaxPolls, .count = *pending->max};
  }
  // The first attempt counts even if it got a download further, so that 1 means no retry.
  if (policy.max_attempts && *policy.max_attempts - state.hedges <= std::max(state.failures, 1)) {
    return {.limit = Limit::MaxAttempts, .count = *policy.max_attempts};
  }
  const auto& backoff = backoff_for(policy, cls);
  if (!gives_up(backoff, state.failures)) return {};
  return {.limit = Limit::BackoffAbort, .count = backoff.abort};
}

// Returns whether the request may be sent again although the server may have executed it.
bool may_repeat(const RetryPolicy& policy, const Classified& classified, const RetryState& state) {
  // The repeated request is the library's own GET, not the user's request.
  if (state.polls_url) return true;
  // A request that was never sent cannot have been executed.
  if (classified.sent == Sent::Never) return true;
  // The policy allows nothing more than that.
  if (policy.repeat == Repeat::Never) return false;
  // The policy trusts only what the protocol guarantees, not the statuses it lists as throttles.
  if (policy.repeat == Repeat::Refused) return classified.refused_for_sure;
  // The server says that it did nothing.
  if (classified.refused) return true;
  return may_execute_twice(policy, state.repeatable);
}

// Returns the part of the server delay that the policy counts, or nullopt if it counts none.
std::optional<Duration> counted_delay(const ServerDelayPolicy& policy, const Classified& classified,
                                      Duration own_wait) {
  if (!classified.server_delay || policy.combine == ServerDelayPolicy::Combine::Own) {
    return std::nullopt;
  }
  return std::min<Duration>(classified.server_delay->delay, plus(own_wait, policy.max_over_own));
}

// Returns the limit that the server delay exceeds: the policy's maximum or the deadline, or None.
Exceeded server_delay_limit(const ServerDelayPolicy& policy, std::optional<Duration> delay,
                            const Clocks& clocks) {
  if (!delay) return {};
  if (*delay > policy.max && policy.over_max == ServerDelayPolicy::OverMax::Stop) {
    return {
        .limit = Limit::ServerDelayMax, .time = policy.max, .excess = minus(*delay, policy.max)};
  }
  const auto clamped = std::min(*delay, policy.max);
  const auto deadline_in = between(clocks.now, clocks.deadline);
  // An attempt that begins at the deadline has no time for its response.
  if (clocks.deadline == kNever || clamped < deadline_in) return {};
  return {.limit = Limit::Deadline, .time = deadline_in, .excess = minus(clamped, deadline_in)};
}

// Returns the wait that combines our own with `server_wait`, the counted part of `delay`, according
// to the policy. `spread` only lengthens the server's part, because we must not send earlier than
// the server asked.
Duration combined(const ServerDelayPolicy& policy, const ServerDelay& delay, Duration server_wait,
                  Duration own_wait, int throttles, double unit_random) {
  using Combine = ServerDelayPolicy::Combine;
  server_wait = std::min(server_wait, policy.max);
  const auto extra = static_cast<double>(server_wait.count()) * policy.spread * unit_random;
  const bool fits = extra > 0 && extra < 0x1p62;  // into the integer of a Duration
  if (fits) server_wait = plus(server_wait, Duration(static_cast<std::int64_t>(extra)));
  if (policy.combine == Combine::Server && !delay.at_least) return server_wait;
  if (policy.combine == Combine::Grow && throttles > 1) return plus(server_wait, own_wait);
  return std::max(server_wait, own_wait);
}

// Returns what is left of max_elapsed_time, which is negative after the limit has passed.
Duration time_left(const RetryPolicy& policy, const Clocks& clocks) {
  if (policy.max_elapsed_time == kForever) return kForever;
  return minus(policy.max_elapsed_time, between(clocks.started, clocks.now));
}

struct Waits {
  Duration own{};                  // by the policy's backoff
  std::optional<Duration> server;  // the part of the server delay that the policy counts
  Duration wait{};                 // both combined
};

// Returns the waits before the next attempt: our own, the one that the server asks for, and the one
// that results from both. All are zero after a success or a permanent failure, because no attempt
// follows. `unit_random` is a random number in [0, 1), for the jitter of the waits.
Waits waits_for(const RetryPolicy& policy, const Classified& classified, const RetryState& state,
                const Clocks& clocks, double unit_random) {
  Waits waits;
  if (classified.cls == Class::Success || classified.cls == Class::Permanent) return waits;
  // Pending responses and failures are counted separately, and each kind has its own backoff.
  const auto retry = classified.cls == Class::Pending ? state.polls : std::max(state.failures, 1);
  const auto& backoff = backoff_for(policy, classified.cls);
  // `state.own_wait` is the result of the user's backoff function, if the user has one.
  waits.own = state.own_wait ? *state.own_wait : delay(backoff, retry, state.previous, unit_random);
  waits.wait = waits.own;
  // The part of the server delay that the policy counts, or nullopt.
  waits.server = counted_delay(policy.server_delay, classified, waits.own);
  if (waits.server) {
    waits.wait = combined(policy.server_delay, *classified.server_delay, *waits.server, waits.own,
                          state.throttles, unit_random);
  }
  // ElapsedRule::ClipWait shortens the wait to what is left of max_elapsed_time. It does so only if
  // the server delay fits into that time, because we must not send earlier than the server asked.
  const auto left = time_left(policy, clocks);
  const auto clips = policy.elapsed_rule == ElapsedRule::ClipWait && left > 0ns;
  const auto obeyed = std::min<Duration>(waits.server.value_or(0ns), policy.server_delay.max);
  if (clips && obeyed <= left) waits.wait = std::min(waits.wait, left);
  return waits;
}

// Returns the limit that the wait would exceed, either the deadline or max_elapsed_time. Returns
// None if the wait exceeds neither.
Exceeded time_limit(const RetryPolicy& policy, Duration wait, const Clocks& clocks) {
  const auto deadline_in = between(clocks.now, clocks.deadline);
  // An attempt that begins at the deadline has no time for its response.
  if (clocks.deadline != kNever && wait >= deadline_in) {
    return {.limit = Limit::Deadline, .time = deadline_in, .excess = minus(wait, deadline_in)};
  }
  const auto left = time_left(policy, clocks);
  if (left == kForever) return {};
  const auto excess = minus(wait, left);
  // BeforeWait counts only the time spent so far: the wait may end after the limit.
  const bool exceeds = policy.elapsed_rule == ElapsedRule::BeforeWait ? left < 0ns : excess > 0ns;
  // A wait may end exactly at max_elapsed_time, except that ClipWait needs some time left.
  // ClipWait has already shortened our own wait, so a wait that is still too long is the server's.
  const bool none_left = policy.elapsed_rule == ElapsedRule::ClipWait && left <= 0ns;
  if (!exceeds && !none_left) return {};
  return {.limit = Limit::MaxElapsedTime, .time = policy.max_elapsed_time, .excess = excess};
}

// Returns `decision` changed to end the call for this reason.
Decision end_call(Decision decision, Reason reason, const Exceeded& exceeded,
                  const Classified& classified, const RetryState& state, const Clocks& clocks) {
  decision.retry = false;
  decision.reason = reason;
  decision.limit = exceeded.limit;
  decision.limit_time = exceeded.time;
  decision.limit_count = exceeded.count;
  decision.excess = exceeded.excess;
  if (decision.server_delay) decision.retry_at = plus(clocks.wall_now, *decision.server_delay);
  // Such a status may be the effect of an earlier attempt: the server has already deleted, created
  // or changed the resource.
  const auto status = classified.status;
  decision.ambiguous = state.maybe_executed && (status == 404 || status == 409 || status == 412);
  return decision;
}

std::string limit_reached(std::string_view name, int count) {
  return std::string(name) + " " + std::to_string(count) + " reached";
}

}  // namespace

// Decides, after an attempt, whether a retry follows, and after which wait. If not, the decision
// has the reason, and the limit that a retry would exceed. Each check below is a reason to end the
// call, and the first that holds counts. Changes nothing: the caller carries the decision out.
Decision decide(const RetryPolicy& policy, const Classified& classified, const RetryState& state,
                const Clocks& clocks, double unit_random) {
  const auto cls = classified.cls;
  const auto waits = waits_for(policy, classified, state, clocks, unit_random);
  Decision decision;
  decision.wait = waits.wait;
  decision.backoff = waits.own;           // without the server delay
  decision.poll = cls == Class::Pending;  // the next attempt asks again for the result
  decision.fresh_connection = classified.fresh_connection;
  if (classified.server_delay && !classified.server_delay->do_not_retry) {
    decision.server_delay = classified.server_delay->delay;
    decision.source = classified.server_delay->source;
  }
  const auto stop = [&](Reason reason, const Exceeded& exceeded = {}) {
    return end_call(decision, reason, exceeded, classified, state, clocks);
  };
  if (cls == Class::Success) return stop(Reason::Success);
  // Another attempt would fail in the same way, or the call was canceled. `classified.stop` is the
  // reason.
  if (cls == Class::Permanent) return stop(classified.stop);
  // This failure, such as a 421 (wrong server), is worth only one retry on a new connection. That
  // retry has been made, and a second one would fail in the same way.
  if (classified.once && state.once_used) return stop(Reason::NotRetryable, {.limit = Limit::Once});
  // The policy limits the attempts (or polls).
  if (const auto exceeded = attempts_limit(policy, cls, state)) {
    return stop(Reason::AttemptsExhausted, exceeded);
  }
  // The request body cannot be read again, or the user has part of the response already.
  if (!state.replayable || state.streaming) return stop(Reason::NotReplayable);
  // The server may have executed the request, and executing it twice may do harm.
  if (!may_repeat(policy, classified, state)) return stop(Reason::UnsafeToRepeat);
  // The server asks for a longer wait than the policy or the deadline allows, and would refuse an
  // earlier attempt. So the call ends now, and `decision.retry_at` says when to try again.
  if (const auto exceeded = server_delay_limit(policy.server_delay, waits.server, clocks)) {
    return stop(Reason::ServerDelayTooLong, exceeded);
  }
  // After the wait, no time would be left for an attempt.
  if (const auto exceeded = time_limit(policy, waits.wait, clocks)) {
    return stop(Reason::ElapsedExhausted, exceeded);
  }
  decision.retry = true;
  decision.unsafe = may_have_executed(classified) && !state.repeatable && !state.polls_url;
  return decision;
}

Decision over_budget(const Decision& decision, const Classified& classified,
                     const RetryState& state, const Clocks& clocks) {
  return end_call(decision, Reason::BudgetExhausted, {.limit = Limit::Budget}, classified, state,
                  clocks);
}

// Returns the text about the limit that ended the call, for people: "max_attempts 5 reached", or
// "retry-after asks for 2.00 min, 1.00 min more than server_delay.max 1.00 min". Returns "" if no
// limit ended the call.
std::string limit_text(const Decision& decision) {
  switch (decision.limit) {
    case Limit::None: return {};
    case Limit::MaxAttempts: return limit_reached("max_attempts", decision.limit_count);
    case Limit::MaxPolls: return limit_reached("pending.max", decision.limit_count);
    case Limit::BackoffAbort: return limit_reached("backoff.abort", decision.limit_count);
    case Limit::MaxElapsedTime:
      if (decision.excess >= decision.wait) {  // no time was left before the wait
        return "max_elapsed_time " + wait_text(decision.limit_time) + " has passed";
      }
      return "a wait of " + wait_text(decision.wait) + " would pass max_elapsed_time " +
             wait_text(decision.limit_time) + " by " + wait_text(decision.excess);
    case Limit::Deadline: {
      if (decision.limit_time <= 0ns) return "the deadline has passed";
      // The wait that was checked may be only the server's part of `decision.wait`. `limit_time`
      // was left until the deadline, and that wait was longer by `excess`.
      const auto wait = "a wait of " + wait_text(plus(decision.limit_time, decision.excess));
      if (decision.excess == 0ns) return wait + " would end at the deadline";
      return wait + " would pass the deadline by " + wait_text(decision.excess);
    }
    case Limit::ServerDelayMax:
      return std::string(to_string(decision.source)) + " asks for " +
             wait_text(*decision.server_delay) + ", " + wait_text(decision.excess) +
             " more than server_delay.max " + wait_text(decision.limit_time);
    case Limit::Once: return "a retry on a new connection had the same result";
    case Limit::Budget: return "the budget is too low for a retry";
  }
  return {};
}

bool may_execute_twice(const RetryPolicy& policy, bool repeatable) {
  return policy.repeat == Repeat::Always || (policy.repeat == Repeat::Safe && repeatable);
}

bool may_have_executed(const Classified& classified) {
  using enum Class;
  const auto cls = classified.cls;
  const bool failed = cls == Transient || cls == Transport || cls == Throttle;
  return failed && classified.sent != Sent::Never && !classified.refused;
}

}  // namespace httpretry
