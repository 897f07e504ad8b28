#include "retry_loop.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace httpretry {
namespace {

RetryStep wait_until(Time when) { return {.kind = RetryStep::Kind::Wait, .until = when}; }

// Returns why the call ended, if there is more to say than `reason` says.
std::string detail_of(const Decision& decision, Repeat repeat) {
  if (decision.reason != Reason::UnsafeToRepeat) return limit_text(decision);
  if (repeat == Repeat::Never) return "the policy says repeat: never";
  if (repeat == Repeat::Refused) {
    return "the policy says repeat: refused, and the server may have executed the request";
  }
  return "the server may have executed the request, and executing it twice may do harm";
}

// Returns a clause that says how much time the attempts took, and the waits between them. Leaves
// out attempts that started before `first_start`, which is a time since the start of the call.
std::string time_spent(const std::vector<Attempt>& attempts, Duration first_start) {
  Duration sending{};
  Duration waiting{};
  for (const auto& attempt : attempts) {
    if (attempt.start < first_start) continue;
    sending += attempt.duration;
    waiting += attempt.wait.value_or(Duration::zero());
  }
  if (waiting == Duration::zero()) return "; the attempt took " + duration_text(sending);
  return "; the attempts took " + duration_text(sending) + ", the waits " + duration_text(waiting);
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

RetryAccount::~RetryAccount() = default;

RetryClaim::RetryClaim(std::shared_ptr<RetryAccount> account, bool adaptive, Time now)
    : account_(std::move(account)), adaptive_(adaptive && account_), last_(now) {
  if (account_) account_->begin_call(now);
}

RetryClaim::~RetryClaim() {
  try {
    cancel(last_);
  } catch (...) {  // from the user's own budget; a destructor cannot report it
  }
}

Duration RetryClaim::begin_attempt(Time now) {
  const auto wait = adaptive_ ? account_->take_send(now) : Duration::zero();
  if (wait == Duration::zero()) attempt_paid_ = std::exchange(paid_, false);
  return wait;
}

// Returns whether a retry may follow, and what is left of the budget.
RetryPermit RetryClaim::end_attempt(const Classified& classified, AfterAttempt next, Time now) {
  if (!account_) return {};
  last_ = now;
  if (adaptive_) account_->count_attempt(classified.cls == Class::Throttle, now);
  closed_ = next == AfterAttempt::Stop;  // set first, in case the user's own budget throws
  const auto permit = account_->end_attempt(claim_, classified, next, now);
  paid_ = next == AfterAttempt::Retry && permit.allowed;
  closed_ = closed_ || !permit.allowed;
  return permit;
}

void RetryClaim::cancel(Time now) {
  if (!account_ || std::exchange(closed_, true)) return;
  account_->cancel(claim_, std::exchange(paid_, false), now);
}

void RetryClaim::cancel_attempt(Time now) {
  paid_ = std::exchange(attempt_paid_, false);
  cancel(now);
}

// Takes the cost of a hedge from the budget, and a send from the send rate. Returns nullopt if it
// has taken both; otherwise it takes nothing and returns the reason.
std::optional<HedgeRefused> RetryClaim::take_hedge(Time now) {
  if (!account_) return std::nullopt;
  if (!account_->take_hedge(claim_, now)) return HedgeRefused::RetryBudget;
  if (!adaptive_ || account_->take_send(now) == Duration::zero()) return std::nullopt;
  account_->give_back_hedge(claim_, now);
  return HedgeRefused::Busy;
}

void RetryClaim::give_back_hedge(Time now) {
  if (account_) account_->give_back_hedge(claim_, now);
}

void RetryClaim::end_hedge(Time now) {
  if (claim_.extras > 0) account_->end_hedge(claim_, now);
}

std::optional<std::int64_t> RetryClaim::left(Time now) const {
  return account_ ? account_->left(now) : std::nullopt;
}

RetryLoop::RetryLoop(const RetryPolicy& policy, std::shared_ptr<RetryAccount> account,
                     History& history, const Options& options)
    : policy_(policy),
      history_(history),
      options_(options),
      claim_(std::move(account), policy.adaptive, options.started) {
  state_.failures = 0;
  state_.repeatable = options.repeatable;
}

// Returns what the caller must do next. Send begins an attempt. Wait means that the send rate
// (which an adaptive policy lowers while the server throttles) does not allow the attempt yet; call
// this again after the wait. Stop ends the call, because that wait would end after the call's
// deadline or max_elapsed_time; the reason is then in the history.
RetryStep RetryLoop::begin(Time now) {
  assert(!in_attempt_);
  const auto elapsed_limit = later(options_.started, policy_.max_elapsed_time);
  // With IncludeWait, a wait for the send rate must end before max_elapsed_time. The other rules do
  // not count such a wait.
  const bool waits_count = policy_.elapsed_rule == ElapsedRule::IncludeWait;
  // `claim_` is this call's part of the budget and the send rate that it shares with other calls. A
  // wait of zero means that the send rate allows the attempt now.
  if (const auto wait = claim_.begin_attempt(now); wait > Duration::zero()) {
    const auto begin_at = later(now, wait);
    if (begin_at < std::min(options_.deadline, waits_count ? elapsed_limit : kNever)) {
      return wait_until(begin_at);
    }
    claim_.cancel(now);  // gives back what the budget was charged for this retry
    history_.stop_reason = Reason::ElapsedExhausted;
    history_.detail =
        "the send rate allows the next attempt in " + duration_text(wait) + ", too late";
    return {.kind = RetryStep::Kind::Stop};
  }
  in_attempt_ = true;
  began_ = now;
  // The headers of the response must arrive by max_elapsed_time. An attempt that begins at that
  // time or later, because waits do not count, has no such limit.
  const bool limits_headers = waits_count || elapsed_limit > now;
  // `until` is the deadline of the whole attempt, and `respond_by` that of the response headers.
  return {.kind = RetryStep::Kind::Send,
          .fresh_connection = fresh_connection_,
          .number = static_cast<int>(history_.attempts.size()) + 1,
          .until = later(now, policy_.attempt_timeout),
          .respond_by = limits_headers ? elapsed_limit : kNever};
}

// Ends an attempt whose outcome was classified: decides whether a retry follows, charges the budget
// for it, and adds the attempt to the history. Returns Wait if a retry follows. Otherwise returns
// Stop, and leaves the reason in the history. `rule` is the text of the rule that decided the
// class, such as "status 503".
RetryStep RetryLoop::end(const EndedAttempt& ended, const Classified& classified,
                         std::string rule) {
  // First brings `state_`, which `decide` reads, up to date.
  if (ended.names_url) begin_polling_url();  // the response names a URL to ask for the result
  if (ended.hedged != nullptr) count_hedges(*ended.hedged);
  state_ = counted(ended, classified.cls);
  if (options_.backoff != nullptr) ask_users_backoff(classified, ended.random);
  const auto clocks = clocks_at(ended);
  auto decision = decide(policy_, classified, state_, clocks, ended.random);

  // Then charges the budget. `claim_` is what this call has taken from the budget that it shares
  // with other calls. Only Retry costs something: Stop and Poll just report how the attempt ended.
  // Charged after all other limits have agreed, so that nothing is taken for a retry that one of
  // them forbids; and before the wait, so that a thousand calls that fail together do not all find
  // the budget full.
  const auto next = !decision.retry ? AfterAttempt::Stop
                    : decision.poll ? AfterAttempt::Poll
                                    : AfterAttempt::Retry;
  // If the last attempt has sent nothing, gives back what it cost.
  const bool failed_unsent = !ended.begun && ended.outcome != nullptr && !*ended.outcome;
  if (failed_unsent && next == AfterAttempt::Stop) claim_.cancel_attempt(ended.now);
  const auto [allowed, budget_left] = claim_.end_attempt(classified, next, ended.now);
  if (!allowed) decision = over_budget(decision, classified, state_, clocks);  // ends the call

  // Last, adds the attempt to the history.
  remember(classified, decision);  // for the decision after the next attempt
  auto& attempt = record(ended, classified.cls, std::move(rule), budget_left);
  attempt.ambiguous = decision.ambiguous;
  if (decision.server_delay) {
    attempt.server_delay = decision.server_delay;
    attempt.server_delay_source = to_string(decision.source);
  }
  if (!decision.retry) return stop(decision);  // writes the reason to `history_`
  attempt.retried_unsafely = decision.unsafe;
  return retry(attempt, decision.backoff, decision.wait, ended.now);
}

// Records in the history why the call ended. Returns Stop.
RetryStep RetryLoop::stop(const Decision& decision) {
  history_.stop_reason = decision.reason;
  history_.retry_at = decision.retry_at;
  history_.detail = detail_of(decision, policy_.repeat);
  if (decision.reason == Reason::ElapsedExhausted) {
    // The deadline is that of the whole call; max_elapsed_time counts from the start of this loop.
    const bool whole_call = decision.limit == Limit::Deadline;
    const auto since = whole_call ? Duration::zero() : options_.started - options_.call_started;
    history_.detail += time_spent(history_.attempts, since);
  }
  return {.kind = RetryStep::Kind::Stop};
}

// Returns the step that resends the request at once, if it failed on a stale connection for the
// first time in this call and may be executed twice. Otherwise does nothing and returns nullopt.
std::optional<RetryStep> RetryLoop::resend(const EndedAttempt& ended) {
  const bool may_repeat = state_.repeatable && may_execute_twice(policy_, state_.repeatable);
  const bool may_resend = !resent_ && (may_repeat || state_.polls_url) && ended.replayable &&
                          !ended.outcome->has_value() &&
                          ended.outcome->error().exchange.stale_connection;
  if (!may_resend) return std::nullopt;
  resent_ = true;
  fresh_connection_ = true;
  if (ended.outcome->error().exchange.sent != Sent::Never) set_maybe_executed();
  if (ended.hedged != nullptr) count_hedges(*ended.hedged);
  auto& attempt = record(ended, Class::Transport, "stale connection", claim_.left(ended.now));
  return retry(attempt, Duration::zero(), Duration::zero(), ended.now);
}

void RetryLoop::refuse(const Error& refusal, Time now) {
  assert(in_attempt_);
  in_attempt_ = false;
  claim_.cancel_attempt(now);
  history_.stop_reason = stop_reason(refusal.code);
  history_.retry_at = refusal.history.retry_at;
  history_.detail = refusal.message;
}

void RetryLoop::cancel(Time now) {
  claim_.cancel(now);
  history_.stop_reason = Reason::Canceled;
}

bool RetryLoop::would_retry(const EndedAttempt& ended, const Classified& classified) const {
  const auto state = counted(ended, classified.cls);
  return decide(policy_, classified, state, clocks_at(ended), ended.random).retry;
}

// Returns the state that `decide` reads, with an attempt that ended like this.
RetryState RetryLoop::counted(const EndedAttempt& ended, Class cls) const {
  RetryState state = state_;
  const bool poll = cls == Class::Pending;
  if (poll) ++state.polls;
  if (!poll && cls != Class::Success && !ended.progressed) ++state.failures;
  state.throttles = cls == Class::Throttle ? state.throttles + 1 : 0;
  state.replayable = ended.replayable;
  state.streaming = ended.streaming;
  state.previous = poll ? last_poll_backoff_ : last_backoff_;
  state.own_wait.reset();
  return state;
}

// A send that lost the race may still have been executed.
void RetryLoop::count_hedges(const HedgedSends& hedged) {
  state_.hedges += static_cast<int>(hedged.others.size());
  for (const auto& other : hedged.others) {
    if (other.sent == Sent::Maybe || other.cls == Class::Transient) set_maybe_executed();
  }
}

std::optional<int> RetryLoop::sends_left() const {
  if (!policy_.max_attempts) return std::nullopt;
  return std::max(*policy_.max_attempts - state_.failures - state_.hedges - 1, 0);
}

void RetryLoop::ask_users_backoff(const Classified& classified, double random) {
  if (classified.cls == Class::Success || classified.cls == Class::Permanent) return;
  const auto own = (*options_.backoff)(policy_, classified, state_, random);
  state_.own_wait = std::max(own, Duration::zero());
}

void RetryLoop::remember(const Classified& classified, const Decision& decision) {
  state_.once_used = state_.once_used || classified.once;
  if (may_have_executed(classified)) set_maybe_executed();
  (decision.poll ? last_poll_backoff_ : last_backoff_) = decision.backoff;
  fresh_connection_ = decision.fresh_connection;
}

void RetryLoop::set_maybe_executed() { state_.maybe_executed = !options_.changes_nothing; }

// From now on the loop sends only its own GETs. Their statuses say nothing about the request.
void RetryLoop::begin_polling_url() {
  state_.polls_url = true;
  state_.maybe_executed = false;
  options_.changes_nothing = true;
}

// Adds the attempt that has just ended to the history, and returns its entry. A hedged attempt had
// several sends at the same time, and each gets an entry, in the order of their numbers. The entry
// that is returned is that of the send whose outcome was used.
Attempt& RetryLoop::record(const EndedAttempt& ended, Class cls, std::string rule,
                           std::optional<std::int64_t> budget_left) {
  assert(in_attempt_);
  in_attempt_ = false;
  auto& attempts = history_.attempts;
  recorded_ = static_cast<int>(attempts.size()) + 1;  // the number of this attempt
  if (ended.hedged != nullptr) {
    // `number` and `began` describe the send whose outcome was used; the others are `Race::Lost`.
    auto& lost_sends = ended.hedged->others;
    recorded_ = ended.hedged->number;
    began_ = ended.hedged->began;
    std::move(lost_sends.begin(), lost_sends.end(), std::back_inserter(attempts));
  }
  // The entry with number N has index N - 1. The sends that lost may have lower and higher numbers,
  // so the entry may belong between theirs.
  auto& attempt = *attempts.emplace(attempts.begin() + (recorded_ - 1));
  if (ended.hedged != nullptr) {
    attempt.hedge = ended.hedged->hedge;
    attempt.race = ended.hedged->won ? Race::Won : Race::None;  // None: no send won
  }
  attempt.number = recorded_;
  attempt.start = began_ - options_.call_started;
  attempt.duration = ended.now - began_;
  attempt.cls = cls;
  attempt.rule = std::move(rule);
  attempt.budget_left = budget_left;
  if (ended.outcome != nullptr) set_outcome(attempt, *ended.outcome);  // nullptr for a function
  if (!ended.begun) attempt.sent = Sent::Never;
  return attempt;
}

// Records in the entry of the attempt that a retry follows. Returns the wait before it.
RetryStep RetryLoop::retry(Attempt& attempt, Duration backoff, Duration wait, Time now) {
  attempt.retried = true;
  attempt.backoff = backoff;
  attempt.wait = wait;
  return wait_until(later(now, wait));
}

}  // namespace httpretry
