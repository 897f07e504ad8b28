#include <httpretry/retry/decide.hpp>

#include "lib/retry/saturating.hpp"

#include <algorithm>
#include <cstdint>

namespace httpretry {
namespace {

using namespace std::chrono_literals;
using policy::between;
using policy::minus;
using policy::plus;

// A limit that would be passed; `limit` is None where none is.
struct Passed {
  Limit limit = Limit::None;
  Duration size{};
  Duration excess{};
  int count = 0;
  explicit operator bool() const { return limit != Limit::None; }
};

const Backoff& backoff_for(const RetryPolicy& policy, Class cls) {
  static const PendingRule kDefaultPending;
  if (cls == Class::Pending) {
    return policy.retry_on.pending ? policy.retry_on.pending->backoff : kDefaultPending.backoff;
  }
  return cls == Class::Throttle && policy.throttle_backoff ? *policy.throttle_backoff
                                                           : policy.backoff;
}

Passed attempts_limit(const RetryPolicy& policy, Class cls, const AttemptFacts& facts) {
  if (cls == Class::Pending) {
    const auto& pending = policy.retry_on.pending;
    if (!pending || !pending->max || facts.polls < *pending->max) return {};
    return {Limit::MaxPolls, {}, {}, *pending->max};
  }
  if (policy.max_attempts && facts.failures >= *policy.max_attempts) {
    return {Limit::MaxAttempts, {}, {}, *policy.max_attempts};
  }
  const auto& backoff = backoff_for(policy, cls);
  if (!gives_up(backoff, facts.failures)) return {};
  return {Limit::BackoffAbort, {}, {}, backoff.abort};
}

bool may_repeat(Repeat repeat, const Classified& classified, const AttemptFacts& facts) {
  // What never left cannot have been done.
  if (classified.sent == Sent::Never) return true;
  // The user trusts nobody's word for what was not done.
  if (repeat == Repeat::Never) return false;
  // The server's word that it did nothing.
  if (classified.refused) return true;
  // Doing it twice does no harm: the user says so, or the request itself.
  return repeat == Repeat::Always || facts.repeatable;
}

// How long the hint asks us to wait, as far as the policy listens; empty where it does not.
std::optional<Duration> heard(const ServerDelayPolicy& policy, const Classified& classified,
                              Duration own) {
  if (!classified.hint || policy.combine == ServerDelayPolicy::Combine::Own) return std::nullopt;
  return std::min(classified.hint->delay, plus(own, policy.max_over_own));
}

Passed hint_limit(const ServerDelayPolicy& rules, std::optional<Duration> hint,
                  const Clocks& clocks) {
  if (!hint) return {};
  if (*hint > rules.max && rules.over_max == ServerDelayPolicy::OverMax::Stop) {
    return {Limit::ServerDelayMax, rules.max, minus(*hint, rules.max), 0};
  }
  const auto asked = std::min(*hint, rules.max);
  const auto left = between(clocks.now, clocks.deadline);
  // An attempt that begins at the deadline has no time to be answered.
  if (clocks.deadline == kNever || asked < left) return {};
  return {Limit::Deadline, left, minus(asked, left), 0};
}

// The larger of ours and the server's, unless the policy has it otherwise. The share `spread` comes
// on top of the hint: never earlier than asked.
Duration combined(const ServerDelayPolicy& policy, const ServerDelay& hint, Duration asked,
                  Duration own, double unit_random) {
  asked = std::min(asked, policy.max);
  const auto extra = static_cast<double>(asked.count()) * policy.spread * unit_random;
  if (extra > 0 && extra < 0x1p62) asked = plus(asked, Duration(static_cast<std::int64_t>(extra)));
  const auto server_alone = policy.combine == ServerDelayPolicy::Combine::Server && !hint.at_least;
  return server_alone ? asked : std::max(asked, own);
}

// Of max_elapsed_time; below 0 where it is passed.
Duration time_left(const RetryPolicy& policy, const Clocks& clocks) {
  return policy.max_elapsed_time == kForever
             ? kForever
             : minus(policy.max_elapsed_time, between(clocks.started, clocks.now));
}

struct Waits {
  Duration own{};
  std::optional<Duration> hint;  // as far as the policy listens to it
  Duration wait{};
};

Waits waits(const RetryPolicy& policy, const Classified& classified, const AttemptFacts& facts,
            const Clocks& clocks, double unit_random) {
  Waits waits;
  if (classified.cls == Class::Success || classified.cls == Class::Permanent) return waits;
  const auto retry = classified.cls == Class::Pending ? facts.polls : facts.failures;
  const auto& backoff = backoff_for(policy, classified.cls);
  waits.own = facts.own_wait ? *facts.own_wait : delay(backoff, retry, facts.previous, unit_random);
  waits.wait = waits.own;
  waits.hint = heard(policy.server_delay, classified, waits.own);
  if (waits.hint) {
    waits.wait =
        combined(policy.server_delay, *classified.hint, *waits.hint, waits.own, unit_random);
  }
  // clip_wait shortens our own wait to what is left, and never below what the server asked for.
  const auto left = time_left(policy, clocks);
  const auto clips = policy.elapsed_rule == ElapsedRule::ClipWait && left > 0ns;
  if (clips && waits.hint.value_or(0ns) <= left) waits.wait = std::min(waits.wait, left);
  return waits;
}

Passed time_limit(const RetryPolicy& policy, Duration wait, const Clocks& clocks) {
  const auto deadline_in = between(clocks.now, clocks.deadline);
  if (clocks.deadline != kNever && wait >= deadline_in) {
    return {Limit::Deadline, deadline_in, minus(wait, deadline_in), 0};
  }
  const auto left = time_left(policy, clocks);
  if (left == kForever) return {};
  const auto passed_by = [&](Duration excess) {
    return Passed{Limit::MaxElapsedTime, policy.max_elapsed_time, excess, 0};
  };
  switch (policy.elapsed_rule) {
    // A wait that ends at the limit is still within it.
    case ElapsedRule::IncludeWait: return wait > left ? passed_by(minus(wait, left)) : Passed{};
    // Only the time already spent counts: the wait may end late.
    case ElapsedRule::BeforeWait: return left < 0ns ? passed_by(-left) : Passed{};
    // What could be clipped is: a wait that is still too long is the server's.
    case ElapsedRule::ClipWait:
      return left <= 0ns || wait > left ? passed_by(minus(wait, left)) : Passed{};
  }
  return {};
}

Decision begun(const Classified& classified, const Waits& waits) {
  Decision decision;
  decision.wait = waits.wait;
  decision.backoff = waits.own;
  decision.poll = classified.cls == Class::Pending;
  decision.fresh_connection = classified.fresh_connection;
  if (classified.hint && !classified.hint->do_not_retry) {
    decision.server_delay = classified.hint->delay;
    decision.source = classified.hint->source;
  }
  return decision;
}

bool is_conflict(int status) { return status == 404 || status == 409 || status == 412; }

Decision stopped(Decision decision, Reason reason, const Passed& passed,
                 const Classified& classified, const AttemptFacts& facts, const Clocks& clocks) {
  decision.retry = false;
  decision.reason = reason;
  decision.limit = passed.limit;
  decision.limit_time = passed.size;
  decision.limit_count = passed.count;
  decision.excess = passed.excess;
  if (decision.server_delay) decision.retry_at = plus(clocks.wall_now, *decision.server_delay);
  decision.ambiguous = facts.maybe_executed && is_conflict(classified.status);
  return decision;
}

// Enough for a person: milliseconds from a second on.
std::string rounded(Duration time) {
  if (time == kForever) return "292 years or more";  // the longest that a Duration holds
  const auto unit = time >= 1s ? Duration(1ms) : time >= 1ms ? Duration(1us) : Duration(1ns);
  return to_text(policy::round_up(time, unit));
}

std::string counted(std::string_view name, int count) {
  return std::string(name) + " " + std::to_string(count) + " reached";
}

}  // namespace

Decision decide(const RetryPolicy& policy, const Classified& classified, const AttemptFacts& facts,
                const Clocks& clocks, double unit_random) {
  const auto cls = classified.cls;
  const auto time = waits(policy, classified, facts, clocks, unit_random);
  auto decision = begun(classified, time);
  const auto stop = [&](Reason reason, const Passed& passed = {}) {
    return stopped(decision, reason, passed, classified, facts, clocks);
  };
  // The call has what it wanted.
  if (cls == Class::Success) return stop(Reason::Success);
  // Asking again would give the same, or nobody waits for the answer any more.
  if (cls == Class::Permanent) return stop(classified.stop);
  // A second fresh connection would lead to the same wrong server.
  if (classified.once && facts.once_used) return stop(Reason::NotRetryable);
  // The user said how often.
  if (const auto passed = attempts_limit(policy, cls, facts)) {
    return stop(Reason::AttemptsExhausted, passed);
  }
  // A body that is gone cannot be sent, and what the user has seen cannot be taken back.
  if (!facts.replayable || facts.streaming) return stop(Reason::NotReplayable);
  // The server may have done it, and doing it twice may do harm.
  if (!may_repeat(policy.repeat, classified, facts)) return stop(Reason::UnsafeToRepeat);
  // Coming back before the server's time is no use: say now when that is, rather than hang.
  if (const auto passed = hint_limit(policy.server_delay, time.hint, clocks)) {
    return stop(Reason::ServerDelayTooLong, passed);
  }
  // A wait that leaves no time for an attempt is not begun.
  if (const auto passed = time_limit(policy, time.wait, clocks)) {
    return stop(Reason::ElapsedExhausted, passed);
  }
  decision.retry = true;
  return decision;
}

Decision over_budget(const Decision& decision, const Classified& classified,
                     const AttemptFacts& facts, const Clocks& clocks) {
  return stopped(decision, Reason::BudgetExhausted, {Limit::Budget, {}, {}, 0}, classified, facts,
                 clocks);
}

std::string limit_text(const Decision& decision) {
  switch (decision.limit) {
    case Limit::None: return {};
    case Limit::MaxAttempts: return counted("max_attempts", decision.limit_count);
    case Limit::MaxPolls: return counted("pending.max", decision.limit_count);
    case Limit::BackoffAbort: return counted("backoff.abort", decision.limit_count);
    case Limit::MaxElapsedTime:
      return "a wait of " + rounded(decision.wait) + " would pass max_elapsed_time " +
             rounded(decision.limit_time) + " by " + rounded(decision.excess);
    case Limit::Deadline:
      if (decision.limit_time <= 0ns) return "the deadline is over";
      return "a wait of " + rounded(decision.server_delay.value_or(decision.wait)) +
             " would pass the deadline by " + rounded(decision.excess);
    case Limit::ServerDelayMax:
      return std::string(to_string(decision.source)) + " asks for " +
             rounded(*decision.server_delay) + ", " + rounded(decision.excess) +
             " more than server_delay.max " + rounded(decision.limit_time);
    case Limit::Budget: return "the budget has not enough left for a retry";
  }
  return {};
}

bool may_have_executed(const Classified& classified) {
  const auto failed = classified.cls == Class::Transient || classified.cls == Class::Transport;
  return failed && classified.sent != Sent::Never && !classified.refused;
}

}  // namespace httpretry
