#include "request_attempts.hpp"

#include "send_again.hpp"

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/body/endless_body.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/retry/error_codes.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace httpretry {
namespace {

// An attempt that brings a download further by this many bytes does not count toward max_attempts.
constexpr std::uint64_t kProgress = std::uint64_t{64} * 1024;

// Returns whether the method is safe, as RFC 9110 defines it.
bool changes_nothing(const Request& request) {
  const auto& method = request.method();
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
         method == "QUERY";
}

}  // namespace

RequestAttempts::RequestAttempts(const RetryOptions& options, ChosenPolicy chosen,
                                 const Request& request, Call& call)
    : options_(options),
      chosen_policy_(std::move(chosen)),
      first_(request),
      call_(call),
      poll_url_(PollUrl::make(*chosen_policy_.policy, request, call)),
      loop_(*chosen_policy_.policy, chosen_policy_.account, call.history(), loop_options()) {}

RetryLoop::Options RequestAttempts::loop_options() const {
  return {.call_started = Call::State::of(call_).started,
          .started = now(),
          .deadline = std::min(call_.deadline(), request().options().respond_by),
          .repeatable = first_.repeatable(),
          .changes_nothing = changes_nothing(first_),
          .attempts_before = static_cast<int>(call_.history().attempts.size()),
          .backoff = options_.backoff ? &options_.backoff : nullptr};
}

RetryStep::Kind RequestAttempts::next_step() {
  step_ = loop_.begin(now());
  return step_.kind;
}

// Makes one attempt: passes the request to the stages below, which are the middlewares after
// `retry` and the transport. Returns the outcome, and sets `step_` to what follows, a retry or the
// end of the call. If a stage held the request back, such as an open circuit breaker, the transport
// began no exchange. That is no attempt, and ends the call.
Task<Outcome> RequestAttempts::send(const Next& next) {
  CurrentAttempt attempt = current_attempt();
  // The call as those stages see it: with the number and the deadline of this attempt. It refers to
  // `attempt`, so those stages see the changes below.
  Call branch = Call::State::attempt(call_, step_.number, step_.until, attempt);
  const int exchanges_before = Call::State::of(call_).exchanges;
  call_.emit(&Observer::attempt_started, request(), step_.number);
  if (request().options().sink) hold_back_body_until_judged(attempt);
  // If a retry will follow, the transport need not receive the rest of the body.
  attempt.will_retry = [this, &attempt](const Response& begun) {
    return will_retry(attempt, begun);
  };

  Outcome outcome = co_await pass_on(branch, next);
  const bool exchanged = Call::State::of(call_).exchanges != exchanges_before;
  const bool was_held_back = !exchanged && !outcome && outcome.error().held_back();
  if (was_held_back) {
    refuse(outcome);
  } else {
    end(attempt, outcome, exchanged);
  }
  co_return outcome;
}

// Returns the state that the stages below read and change during this attempt.
CurrentAttempt RequestAttempts::current_attempt() {
  return {.call = call_,
          .loop = loop_,
          .policy = chosen_policy_.policy,
          .resolved = chosen_policy_.resolved,
          .classify = options_.classify,
          .request = request(),
          .number = step_.number,
          .is_retry = loop_.is_retry(),
          .may_be_hedged = call_.get<SendAgain>() == nullptr || is_polling(),
          .limits = limits()};
}

// Passes a copy of the request to the stages below. If the call has a SendAgain, that resends the
// request in all attempts after the first; a poll is the library's own GET and needs none.
Task<Outcome> RequestAttempts::pass_on(Call& branch, const Next& next) {
  Request attempt = request();
  if (step_.fresh_connection) attempt.edit_options().fresh_connection = true;
  const auto* resender = step_.number > 1 ? call_.get<SendAgain>() : nullptr;
  if (resender != nullptr && !is_polling()) return resender->send(std::move(attempt), branch, next);
  return next(std::move(attempt), branch);
}

// Returns the limits that the policy sets for each exchange of this attempt. An endless body, such
// as an event stream, may pause for any time.
ExchangeLimits RequestAttempts::limits() const {
  const auto& policy = *chosen_policy_.policy;
  ExchangeLimits limits;
  limits.connect_timeout = policy.connect_timeout;
  limits.response_timeout = policy.response_timeout;
  limits.respond_by = step_.respond_by;
  if (call_.get<EndlessBody>() == nullptr) limits.stall_timeout = policy.stall_timeout;
  return limits;
}

// Returns what the retry loop needs to know about an attempt that has just ended. The result refers
// to `attempt` and `outcome`.
EndedAttempt RequestAttempts::facts_of(CurrentAttempt& attempt, const Outcome& outcome) const {
  EndedAttempt ended{.now = now(),
                     .wall_now = call_.scheduler().wall_now(),
                     .outcome = &outcome,
                     .replayable = request().body().replayable()};
  // True if the user already has a part of the response that another attempt could not continue.
  auto* delivery = request().options().sink ? Delivery::if_open(call_) : nullptr;
  const bool endless = call_.get<EndlessBody>() != nullptr;
  ended.streaming =
      delivery != nullptr && (endless ? delivery->has_begun() : !delivery->can_retry());
  ended.progressed = delivery != nullptr && delivery->take_progress() >= kProgress;
  if (attempt.hedged) ended.hedged = &*attempt.hedged;
  return ended;
}

// Returns whether a retry will follow this response. Assumes that the jitter makes the wait as long
// as possible, and so returns true only if enough time is left for any wait.
bool RequestAttempts::will_retry(CurrentAttempt& attempt, const Response& begun) const {
  const Outcome outcome(begun);
  auto ended = facts_of(attempt, outcome);
  ended.random = std::nextafter(1.0, 0.0);
  return loop_.would_retry(ended, attempt.judge_anew(outcome));
}

// Ends an attempt: has `loop_` decide what follows and record the attempt in the history, notifies
// the observers, and sets `step_` to what follows, a wait or the end of the call. `exchanged` says
// whether the transport began to send the attempt.
void RequestAttempts::end(CurrentAttempt& attempt, Outcome& outcome, bool exchanged) {
  auto ended = facts_of(attempt, outcome);
  ended.begun = exchanged;
  // The index in the history of the entry that this attempt adds. A hedged attempt adds several.
  const auto first_new_entry = call_.history().attempts.size();
  // If the server had already closed the connection, `resend` records the attempt and returns a
  // wait that is already over, so the request is sent again at once. That is not a retry, and needs
  // no verdict. In all other cases `resend` returns nullopt. A request that forbids retries is not
  // resent, nor is any request after the caller has stopped the call.
  const bool may_resend =
      request().options().retry && !Call::State::own_stop(call_).stop_requested();
  auto step = may_resend ? loop_.resend(ended) : std::nullopt;
  if (!step) step = judge_and_decide(attempt, outcome, ended);
  notify_attempt_ended(first_new_entry);
  // If another attempt follows, it polls the URL that judge_and_decide has found, if any. The entry
  // with the index i has the number i + 1.
  if (poll_url_) {
    const auto sends = call_.history().attempts.size();
    poll_url_->end_attempt(static_cast<int>(first_new_entry) + 1, static_cast<int>(sends),
                           step->kind != RetryStep::Kind::Stop);
  }
  step_ = *step;
}

// Classifies the outcome of an attempt, and returns what `loop_` decides: a wait or the end of the
// call. If the outcome is a pending response ("not yet") with a URL to poll that is not allowed,
// replaces it with an error. `ended` refers to `outcome`.
RetryStep RequestAttempts::judge_and_decide(CurrentAttempt& attempt, Outcome& outcome,
                                            EndedAttempt ended) {
  ended.random = call_.random();  // for the jitter of the backoff
  auto verdict = attempt.judge(outcome);
  // `passed` is the middleware `guards` if it let this send pass unchecked, because nothing limited
  // it. The server may now ask for a pause, which then applies to other calls as well.
  if (attempt.passed != nullptr) {
    attempt.passed->begin_requested_pause(request(), call_, attempt, outcome, verdict);
  }
  // take_url_of returns whether the response names a URL at which to ask again, and replaces the
  // outcome with an error if that URL must not be polled.
  const bool is_pending = outcome && verdict.cls == Class::Pending;
  if (is_pending && poll_url_ && poll_url_->take_url_of(outcome)) {
    // If the call goes on, the next request is a GET without a body, which can always be resent.
    ended.names_url = ended.replayable = true;
    const bool url_was_refused = !outcome;  // then the error is judged instead of the response
    if (url_was_refused)
      verdict = classify(*chosen_policy_.policy, Observed(outcome, ended.wall_now));
  }
  return loop_.end(ended, verdict, to_string(verdict.rule));
}

// Notifies the observers of each send of the attempt: the entries of the history from the index
// `first_new_entry` on. Sends that lost a race come first.
void RequestAttempts::notify_attempt_ended(std::size_t first_new_entry) {
  const auto& last = loop_.last_attempt();
  auto& attempts = call_.history().attempts;
  for (auto i = first_new_entry; i < attempts.size(); ++i) {
    attempts[i].policy = chosen_policy_.resolved;
    if (&attempts[i] != &last) call_.emit(&Observer::attempt_ended, request(), attempts[i]);
  }
  call_.emit(&Observer::attempt_ended, request(), last);
}

// Ends the call, because a stage below, such as an open circuit breaker, held the request back, so
// that this attempt sent nothing. `outcome` is the error of that stage. If it is a breaker that
// holds back only retries, the outcome becomes that of the previous attempt (`last_`). Otherwise
// the error remains the outcome, and its `sent` covers the earlier attempts of the call as well.
void RequestAttempts::refuse(Outcome& outcome) {
  auto& error = outcome.error();
  loop_.refuse(error, now());
  step_.kind = RetryStep::Kind::Stop;
  // Observers get the error before its `sent` covers earlier attempts: this attempt sent nothing.
  call_.emit(&Observer::shed, error);
  if (last_ && chosen_policy_.breaker_holds_only_retries() && error.code == Errc::CircuitOpen) {
    outcome = *std::move(last_);
    return;
  }
  // `sent` becomes Maybe (sent, but not answered) if that is true of any attempt. Otherwise it
  // becomes Answered if any attempt was answered, and Never if nothing was sent.
  for (const auto& attempt : call_.history().attempts) {
    if (attempt.sent == Sent::Maybe || error.exchange.sent == Sent::Never) {
      error.exchange.sent = attempt.sent;
    }
  }
}

void RequestAttempts::keep(Outcome outcome) {
  if (chosen_policy_.may_end_with_last()) last_ = std::move(outcome);
}

Outcome RequestAttempts::last_outcome() {
  if (!last_) return Error(Errc::Timeout, call_.history().detail);
  return *std::move(last_);
}

// Ends the call during a wait. Returns its outcome, with the exchange of the last attempt if there
// was one.
Error RequestAttempts::cancel() {
  loop_.cancel(now());
  const auto& url = request().parsed_url();
  Error error(Errc::Canceled, request().method() + " " + (url ? url->without_secrets() : "") +
                                  ": canceled while waiting to retry");
  const auto* last = call_.history().last();
  if (loop_.is_retry() && last != nullptr) error.exchange = last->exchange();
  return error;
}

// Makes the delivery to the sink hold back bodies that the policy's rules read, or all bodies if
// the user has a classify function. Such a body may make the response a failure, so it must not
// reach the user before it is judged. The judgment stays in `attempt.judged`.
void RequestAttempts::hold_back_body_until_judged(CurrentAttempt& attempt) {
  const auto delivery = Delivery::of(request(), call_);
  if (!delivery) return;  // the transport will run into the same error, and return it
  const bool all_bodies = options_.classify != nullptr;
  auto must_read = [policy = chosen_policy_.policy, all_bodies](int status,
                                                                const Headers& headers) {
    return all_bodies || policy::must_read_body(policy->retry_on, status, headers);
  };
  auto is_success = [&attempt](const Response& begun) {  // only called while the attempt runs
    attempt.judged = attempt.judge_anew(Outcome(begun));
    return attempt.judged->cls == Class::Success;
  };
  (*delivery)->hold_back(
      {.must_read = must_read, .byte_count = kClassifiedBody, .is_success = is_success});
}

}  // namespace httpretry
