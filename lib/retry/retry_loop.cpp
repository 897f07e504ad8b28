#include "lib/retry/retry_loop.hpp"

#include "lib/retry/saturating.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace httpretry {
namespace {

RetryStep wait_until(Time when) {
  RetryStep step;
  step.kind = RetryStep::Kind::Wait;
  step.until = when;
  return step;
}

// Why a call ended, where there is more to say than Reason does.
std::string detail_of(const Decision& decision, Repeat repeat) {
  if (decision.reason != Reason::UnsafeToRepeat) return limit_text(decision);
  if (repeat == Repeat::Never) return "the policy says repeat: never";
  if (repeat == Repeat::Refused) {
    return "the policy says repeat: refused, and the server may have done it";
  }
  return "the server may have done it, and doing it twice may do harm";
}

// What used up the time since `since`: the attempts, or the waits between them.
std::string time_spent(const std::vector<Attempt>& attempts, Duration since) {
  Duration sending{};
  Duration waiting{};
  for (const auto& attempt : attempts) {
    if (attempt.start < since) continue;
    sending += attempt.duration;
    waiting += attempt.wait.value_or(Duration::zero());
  }
  if (waiting == Duration::zero()) return "; the attempt took " + policy::wait_text(sending);
  return "; the attempts took " + policy::wait_text(sending) + ", the waits " +
         policy::wait_text(waiting);
}

}  // namespace

void set_outcome(Attempt& attempt, const Outcome& outcome) {
  attempt.set_exchange(exchange_of(outcome));
  attempt.status = outcome ? outcome->status : outcome.error().status;
  if (outcome) return;
  attempt.error = outcome.error().code;
  attempt.curl_code = outcome.error().curl_code;
  attempt.error_message = outcome.error().message;
}

RetryStep RetryLoop::begin(Time now) {
  assert(!in_attempt_);
  const auto elapsed_limit = later(kept_.started, policy_.max_elapsed_time);
  const bool waits_count = policy_.elapsed_rule == ElapsedRule::IncludeWait;
  if (const auto wait = limits_.begin_attempt(now); wait > Duration::zero()) {
    const auto when = later(now, wait);
    if (when < std::min(options_.deadline, waits_count ? elapsed_limit : kNever)) {
      return wait_until(when);
    }
    limits_.cancel(now);
    history_.stop_reason = Reason::ElapsedExhausted;
    history_.detail =
        "the send rate allows the next attempt in " + duration_text(wait) + ", too late";
    return {};
  }
  in_attempt_ = true;
  began_ = now;
  RetryStep step;
  step.kind = RetryStep::Kind::Send;
  step.fresh_connection = kept_.fresh_connection;
  step.number = static_cast<int>(history_.attempts.size()) + 1;
  step.until = later(now, policy_.attempt_timeout);
  // Two of the elapsed rules allow an attempt that begins after max_elapsed_time: it is not bounded
  // by it.
  if (waits_count || elapsed_limit > now) step.respond_by = elapsed_limit;
  return step;
}

RetryStep RetryLoop::end(const EndedAttempt& ended, const Classified& classified,
                         std::string rule) {
  if (ended.names_url) poll_url();
  if (ended.hedged != nullptr) count_hedges(*ended.hedged);
  count(classified.cls);
  auto state = state_after(ended, classified.cls);
  if (options_.backoff != nullptr) ask_own_backoff(classified, ended.random, state);
  const Clocks clocks{ended.now, kept_.started, options_.deadline, ended.wall_now};
  auto decision = decide(policy_, classified, state, clocks, ended.random);
  // The budget comes last, so that nothing is taken for a retry that another limit forbids; and
  // before the wait, so that a thousand calls that fail together do not all find it full.
  using Next = SharedLimits::Next;
  const auto next = !decision.retry ? Next::Stop : decision.poll ? Next::Poll : Next::Retry;
  const auto [allowed, budget_left] = limits_.end_attempt(classified, next, ended.now);
  if (!allowed) decision = over_budget(decision, classified, state, clocks);

  remember(classified, decision);
  auto& attempt = record(ended, classified.cls, std::move(rule), budget_left);
  attempt.ambiguous = decision.ambiguous;
  if (decision.server_delay) {
    attempt.server_delay = decision.server_delay;
    attempt.server_delay_source = to_string(decision.source);
  }
  if (decision.retry) return retry(attempt, decision.backoff, decision.wait, ended.now);
  history_.stop_reason = decision.reason;
  history_.retry_at = decision.retry_at;
  history_.detail = detail_of(decision, policy_.repeat);
  if (decision.reason == Reason::ElapsedExhausted) {
    const bool whole_call = decision.limit == Limit::Deadline;
    const auto since = whole_call ? Duration::zero() : kept_.started - options_.call_started;
    history_.detail += time_spent(history_.attempts, since);
  }
  return {};
}

std::optional<RetryStep> RetryLoop::resend(const EndedAttempt& ended) {
  const bool repeatable =
      kept_.repeatable && policy_.repeat != Repeat::Never && policy_.repeat != Repeat::Refused;
  const bool may_resend = !kept_.resent && (repeatable || kept_.polls_url) && ended.replayable &&
                          !ended.outcome->has_value() &&
                          ended.outcome->error().exchange.stale_connection;
  if (!may_resend) return std::nullopt;
  kept_.resent = true;
  kept_.fresh_connection = true;
  if (ended.outcome->error().exchange.sent != Sent::Never) maybe_executed();
  if (ended.hedged != nullptr) count_hedges(*ended.hedged);
  auto& attempt = record(ended, Class::Transport, "stale connection", limits_.left(ended.now));
  return retry(attempt, Duration::zero(), Duration::zero(), ended.now);
}

void RetryLoop::refuse(const Error& refusal, Time now) {
  assert(in_attempt_);
  in_attempt_ = false;
  limits_.cancel(now);
  history_.stop_reason = stop_reason(refusal.code);
  history_.retry_at = refusal.history.retry_at;
  history_.detail = refusal.message;
}

void RetryLoop::cancel(SharedLimits& limits, History& history, Time now) {
  limits.cancel(now);
  history.stop_reason = Reason::Canceled;
}

void RetryLoop::count(Class cls) {
  const bool poll = cls == Class::Pending;
  if (poll) ++kept_.polls;
  if (!poll && cls != Class::Success) ++kept_.failures;
  kept_.throttles = cls == Class::Throttle ? kept_.throttles + 1 : 0;
}

// What `decide` is to see: the attempt that has just ended counts.
RetryState RetryLoop::state_after(const EndedAttempt& ended, Class cls) const {
  RetryState state;
  state.failures = kept_.failures;
  state.hedges = kept_.hedges;
  state.throttles = kept_.throttles;
  state.polls = kept_.polls;
  state.repeatable = kept_.repeatable;
  state.replayable = ended.replayable;
  state.streaming = ended.streaming;
  state.polls_url = kept_.polls_url;
  state.once_used = kept_.once_used;
  state.maybe_executed = kept_.maybe_executed;
  state.previous = cls == Class::Pending ? kept_.last_poll_backoff : kept_.last_backoff;
  return state;
}

// A send that lost may have been carried out.
void RetryLoop::count_hedges(const HedgedSends& hedged) {
  kept_.hedges += static_cast<int>(hedged.others.size());
  for (const auto& other : hedged.others) {
    if (other.sent == Sent::Maybe || other.cls == Class::Transient) maybe_executed();
  }
}

std::optional<int> RetryLoop::sends_left() const {
  if (!policy_.max_attempts) return std::nullopt;
  return std::max(*policy_.max_attempts - kept_.failures - kept_.hedges - 1, 0);
}

void RetryLoop::ask_own_backoff(const Classified& classified, double random,
                                RetryState& state) const {
  if (classified.cls == Class::Success || classified.cls == Class::Permanent) return;
  const auto own = (*options_.backoff)(policy_, classified, state, random);
  state.own_wait = std::max(own, Duration::zero());
}

void RetryLoop::remember(const Classified& classified, const Decision& decision) {
  kept_.once_used = kept_.once_used || classified.once;
  if (may_have_executed(classified)) maybe_executed();
  (decision.poll ? kept_.last_poll_backoff : kept_.last_backoff) = decision.backoff;
  kept_.fresh_connection = decision.fresh_connection;
}

// Only GETs of ours follow: what they are answered says nothing of the request.
void RetryLoop::poll_url() {
  kept_.polls_url = true;
  kept_.maybe_executed = false;
  kept_.changes_nothing = true;
}

void RetryLoop::maybe_executed() { kept_.maybe_executed = !kept_.changes_nothing; }

Attempt& RetryLoop::record(const EndedAttempt& ended, Class cls, std::string rule,
                           std::optional<std::int64_t> budget_left) {
  assert(in_attempt_);
  in_attempt_ = false;
  auto& attempts = history_.attempts;
  kept_.recorded = static_cast<int>(attempts.size()) + 1;
  if (ended.hedged != nullptr) {
    auto& others = ended.hedged->others;
    kept_.recorded = ended.hedged->number;
    began_ = ended.hedged->began;
    std::move(others.begin(), others.end(), std::back_inserter(attempts));
  }
  auto& attempt = *attempts.emplace(attempts.begin() + (kept_.recorded - 1));
  if (ended.hedged != nullptr) {
    attempt.hedge = ended.hedged->hedge;
    attempt.race = ended.hedged->won ? Race::Won : Race::None;
  }
  attempt.number = kept_.recorded;
  attempt.start = began_ - options_.call_started;
  attempt.duration = ended.now - began_;
  attempt.cls = cls;
  attempt.rule = std::move(rule);
  attempt.budget_left = budget_left;
  if (ended.outcome != nullptr) set_outcome(attempt, *ended.outcome);
  if (!ended.begun) attempt.sent = Sent::Never;
  return attempt;
}

RetryStep RetryLoop::retry(Attempt& attempt, Duration backoff, Duration wait, Time now) {
  attempt.retried = true;
  attempt.backoff = backoff;
  attempt.wait = wait;
  return wait_until(later(now, wait));
}

}  // namespace httpretry
