#include "request_attempts.hpp"

#include "own_budget.hpp"
#include "send_again.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/flow/delivery.hpp"
#include "lib/flow/endless_body.hpp"
#include "lib/retry/error_codes.hpp"

#include <algorithm>

namespace httpretry {
namespace {

bool changes_nothing(const Request& request) {
  const auto& method = request.method();
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
         method == "QUERY";
}

std::shared_ptr<RetryAccount> account_for(const RetryOptions& options, const Request& request,
                                          std::shared_ptr<RetryAccount> shared) {
  if (options.budget == nullptr) return shared;
  return std::make_shared<OwnBudget>(*options.budget, request, std::move(shared));
}

}  // namespace

RequestAttempts::RequestAttempts(const RetryOptions& options, ChosenPolicy chosen,
                                 std::shared_ptr<RetryAccount> account, const Request& request,
                                 Call& call)
    : options_(options),
      chosen_(std::move(chosen)),
      first_(request),
      call_(call),
      polls_(PollUrl::make(chosen_.policy(), request, call)),
      loop_(chosen_.policy(), account_for(options, request, std::move(account)), call.history(),
            loop_options()),
      attempt_{.call = call,
               .loop = loop_,
               .policy = chosen_.shared(),
               .resolved = chosen_.resolved,
               .classify = options.classify} {}

RetryLoop::Options RequestAttempts::loop_options() const {
  RetryLoop::Options options;
  options.call_started = Call::State::of(call_).started;
  options.started = now();
  options.deadline = std::min(call_.deadline(), request().options().respond_by);
  options.repeatable = first_.repeatable();
  options.changes_nothing = changes_nothing(first_);
  if (options_.backoff) options.backoff = &options_.backoff;
  return options;
}

RetryStep::Kind RequestAttempts::begin() {
  step_ = loop_.begin(now());
  if (step_.kind == RetryStep::Kind::Send) begin_attempt(step_);
  return step_.kind;
}

void RequestAttempts::begin_attempt(const RetryStep& step) {
  attempt_.request = &request();
  attempt_.number = step.number;
  attempt_.is_retry = loop_.is_retry();
  attempt_.may_be_hedged = call_.get<SendAgain>() == nullptr || polls();
  attempt_.limits = limits(step.respond_by);
  attempt_.passed = nullptr;
  branch_.emplace(Call::State::attempt(call_, step.number, step.until, attempt_));
  exchanges_before_ = Call::State::of(call_).exchanges;
}

Task<Outcome> RequestAttempts::send(const Next& next) {
  call_.emit(&Observer::attempt_started, request(), step_.number);
  if (request().options().sink) hold_back_what_rules_read();
  Request attempt = request();
  if (step_.fresh_connection) attempt.edit_options().fresh_connection = true;
  const auto* again = step_.number > 1 ? call_.get<SendAgain>() : nullptr;
  if (again != nullptr && !polls()) return again->send(std::move(attempt), *branch_, next);
  return next(std::move(attempt), *branch_);
}

ExchangeLimits RequestAttempts::limits(Time respond_by) const {
  const auto& policy = chosen_.policy();
  ExchangeLimits limits;
  limits.connect_timeout = policy.connect_timeout;
  limits.response_timeout = policy.response_timeout;
  limits.respond_by = respond_by;
  if (call_.get<EndlessBody>() == nullptr) limits.stall_timeout = policy.stall_timeout;
  return limits;
}

RetryStep::Kind RequestAttempts::end(Outcome& outcome) {
  const auto& options = request().options();
  const auto* delivery = options.sink ? Delivery::begun(call_) : nullptr;
  EndedAttempt ended;
  ended.now = now();
  ended.wall_now = call_.scheduler().wall_now();
  ended.outcome = &outcome;
  ended.begun = exchanged();
  ended.replayable = request().body().replayable();
  const bool endless = call_.get<EndlessBody>() != nullptr;
  ended.streaming =
      delivery != nullptr && (endless ? delivery->has_begun() : !delivery->can_retry());
  if (attempt_.hedged) ended.hedged = &*attempt_.hedged;
  const auto recorded_before = call_.history().attempts.size();

  const bool may_resend = options.retry && !Call::State::own_stop(call_).stop_requested();
  auto step = may_resend ? loop_.resend(ended) : std::nullopt;
  if (!step) {
    ended.random = call_.random();
    auto found = attempt_.judge(outcome);
    if (attempt_.passed != nullptr)
      attempt_.passed->hear(request(), call_, attempt_, outcome, found);
    if (outcome && found.cls == Class::Pending && polls_ && polls_->find(outcome)) {
      ended.names_url = ended.replayable = true;
      if (!outcome) found = classify(chosen_.policy(), Observed(outcome, ended.wall_now));
    }
    step = loop_.end(ended, found, to_string(found.rule));
  }
  tell_of_the_end(recorded_before);
  if (polls_) polls_->end_attempt(loop_.last_number(), step->kind != RetryStep::Kind::Stop);
  // A call that waits keeps none of it.
  branch_.reset();
  attempt_.judged.reset();
  attempt_.hedged.reset();
  step_ = *step;
  return step_.kind;
}

// Of each send of the attempt, those that lost first.
void RequestAttempts::tell_of_the_end(std::size_t recorded_before) {
  const auto& last = loop_.last_attempt();
  auto& attempts = call_.history().attempts;
  for (auto i = recorded_before; i < attempts.size(); ++i) {
    attempts[i].policy = chosen_.resolved;
    if (&attempts[i] != &last) call_.emit(&Observer::attempt_ended, request(), attempts[i]);
  }
  call_.emit(&Observer::attempt_ended, request(), last);
}

// Whether the transport has begun an exchange of the attempt.
bool RequestAttempts::exchanged() const {
  return Call::State::of(call_).exchanges != exchanges_before_;
}

bool RequestAttempts::was_held_back(const Outcome& outcome) const {
  return !outcome && outcome.error().held_back() && !exchanged();
}

Outcome RequestAttempts::refuse(Outcome refusal, Outcome* before) {
  auto& error = refusal.error();
  loop_.refuse(error, now());
  call_.emit(&Observer::shed, error);
  if (before != nullptr && chosen_.only_retries_ask() && error.code == Errc::CircuitOpen) {
    return std::move(*before);
  }
  for (const auto& attempt : call_.history().attempts) {
    if (attempt.sent == Sent::Maybe || error.exchange.sent == Sent::Never) {
      error.exchange.sent = attempt.sent;
    }
  }
  return refusal;
}

Error RequestAttempts::cancel() {
  loop_.cancel(now());
  const auto& url = request().parsed_url();
  Error error(Errc::Canceled, request().method() + " " + (url ? url->without_secrets() : "") +
                                  ": canceled while waiting to retry");
  const auto* last = call_.history().last();
  if (loop_.is_retry() && last != nullptr) error.exchange = last->exchange();
  return error;
}

// A rule of the policy may call a response a failure because of its body. Such a body must not
// reach the user before it is judged.
void RequestAttempts::hold_back_what_rules_read() {
  const auto delivery = Delivery::of(request(), call_);
  if (!delivery) return;  // the transport will find the same error, and return it
  const bool all = options_.classify != nullptr;
  auto which = [policy = chosen_.shared(), all](int status, const Headers& headers) {
    return all || policy::looks_into(policy->retry_on, status, headers);
  };
  auto is_good = [this](const Response& begun) {  // only called while an attempt of ours runs
    auto& judged = attempt_.judged;
    judged = attempt_.judge_anew(Outcome(begun));
    return judged->cls == Class::Success;
  };
  (*delivery)->hold_back({std::move(which), kClassifiedBody, std::move(is_good)});
}

}  // namespace httpretry
