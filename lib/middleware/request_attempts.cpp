#include "request_attempts.hpp"

#include "send_again.hpp"

#include "lib/flow/call_state.hpp"
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

// Where there are none.
class NoLimits final : public SharedLimits {
 public:
  Duration begin_attempt(Time /*now*/) override { return {}; }
  Permit end_attempt(const Classified& /*classified*/, Next /*next*/, Time /*now*/) override {
    return {};
  }
  void cancel(Time /*now*/) override {}
  [[nodiscard]] std::optional<std::int64_t> left(Time /*now*/) const override { return {}; }
};

}  // namespace

RequestAttempts::RequestAttempts(const RetryOptions& options, ChosenPolicy chosen,
                                 std::shared_ptr<RetryAccount> budget, const Request& request,
                                 Call& call)
    : options_(options),
      chosen_(std::move(chosen)),
      first_(request),
      call_(call),
      polls_(PollUrl::make(chosen_.policy(), request, call)) {
  kept_.started = now();
  kept_.repeatable = request.repeatable();
  kept_.changes_nothing = changes_nothing(request);
  if (!budget && options.budget == nullptr) return;
  budget_ = std::make_unique<BudgetUse>(std::move(budget), chosen_.policy().adaptive, kept_.started,
                                        options.budget.get(), &request);
}

SharedLimits& RequestAttempts::shared_limits() {
  static NoLimits none;
  return budget_ ? static_cast<SharedLimits&>(*budget_) : none;
}

RetryLoop RequestAttempts::retry_loop() {
  auto& state = Call::State::of(call_);
  RetryLoop::Options options;
  options.call_started = state.started;
  options.deadline = std::min(call_.deadline(), request().options().respond_by);
  if (options_.backoff) options.backoff = &options_.backoff;
  return {chosen_.policy(), shared_limits(), state.history, options, kept_};
}

RetryStep::Kind RequestAttempts::begin() {
  auto loop = retry_loop();
  const auto step = loop.begin(now());
  wait_until_ = step.until;
  if (step.kind == RetryStep::Kind::Send) {
    sending_ =
        std::make_unique<Sending>(Call::State::attempt(call_, step.number, step.until, *this), loop,
                                  step, Call::State::of(call_).exchanges);
  }
  return step.kind;
}

Task<Outcome> RequestAttempts::send(const Next& next) {
  call_.emit(&Observer::attempt_started, request(), sending_->number);
  if (request().options().sink) hold_back_what_rules_read();
  Request attempt = request();
  if (sending_->fresh_connection) attempt.edit_options().fresh_connection = true;
  const auto* again = sending_->number > 1 ? call_.get<SendAgain>() : nullptr;
  if (again != nullptr && !polls()) return again->send(std::move(attempt), sending_->branch, next);
  return next(std::move(attempt), sending_->branch);
}

ExchangeLimits RequestAttempts::limits() const {
  const auto& policy = chosen_.policy();
  ExchangeLimits limits;
  limits.connect_timeout = policy.connect_timeout;
  limits.response_timeout = policy.response_timeout;
  limits.respond_by = sending_->respond_by;
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
  ended.begun = Call::State::of(call_).exchanges != sending_->exchanges_before;
  ended.replayable = request().body().replayable();
  const bool endless = call_.get<EndlessBody>() != nullptr;
  ended.streaming =
      delivery != nullptr && (endless ? delivery->has_begun() : !delivery->can_retry());
  if (sending_->hedged) ended.hedged = &*sending_->hedged;
  const auto recorded_before = call_.history().attempts.size();

  const bool may_resend = options.retry && !Call::State::own_stop(call_).stop_requested();
  auto& loop = sending_->loop;
  auto step = may_resend ? loop.resend(ended) : std::nullopt;
  if (!step) {
    ended.random = call_.random();
    auto found = judge(outcome);
    const auto& state = Call::State::of(call_);
    if (state.gate != nullptr && !state.gate_heard) {
      state.gate->hear(request(), call_, *this, outcome, found);
    }
    if (outcome && found.cls == Class::Pending && polls_ && polls_->find(outcome)) {
      ended.names_url = ended.replayable = true;
      if (!outcome) found = classify(chosen_.policy(), Observed(outcome, ended.wall_now));
    }
    step = loop.end(ended, found, to_string(found.rule));
  }
  tell_of_the_end(recorded_before, loop.recorded());
  if (polls_) polls_->end_attempt(kept_.recorded, step->kind != RetryStep::Kind::Stop);
  wait_until_ = step->until;
  sending_.reset();
  return step->kind;
}

// Of each send of the attempt, those that lost first.
void RequestAttempts::tell_of_the_end(std::size_t recorded_before, const Attempt& last) {
  auto& attempts = call_.history().attempts;
  for (auto i = recorded_before; i < attempts.size(); ++i) {
    attempts[i].policy = chosen_.resolved;
    if (&attempts[i] != &last) call_.emit(&Observer::attempt_ended, request(), attempts[i]);
  }
  call_.emit(&Observer::attempt_ended, request(), last);
}

bool RequestAttempts::was_held_back(const Outcome& outcome) const {
  return !outcome && outcome.error().held_back() &&
         Call::State::of(call_).exchanges == sending_->exchanges_before;
}

Outcome RequestAttempts::refuse(Outcome refusal, Outcome* before) {
  auto& error = refusal.error();
  sending_->loop.refuse(error, now());
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
  RetryLoop::cancel(shared_limits(), call_.history(), now());
  const auto& url = request().parsed_url();
  Error error(Errc::Canceled, request().method() + " " + (url ? url->without_secrets() : "") +
                                  ": canceled while waiting to retry");
  const auto* last = call_.history().last();
  if (is_retry() && last != nullptr) error.exchange = last->exchange();
  return error;
}

// What went to a sink was judged by its beginning.
Classified RequestAttempts::judge(const Outcome& outcome) const {
  if (outcome && outcome->delivered > 0 && sending_->judged) return *sending_->judged;
  return classified(outcome, call_.scheduler().wall_now());
}

bool RequestAttempts::may_be_hedged() const { return call_.get<SendAgain>() == nullptr || polls(); }

bool RequestAttempts::reads_body(int status, const Headers& headers) const {
  // We do not know what a function of the user reads.
  return options_.classify != nullptr ||
         policy::looks_into(chosen_.policy().retry_on, status, headers);
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
    auto& judged = sending_->judged;
    judged = classified(Outcome(begun), call_.scheduler().wall_now());
    return judged->cls == Class::Success;
  };
  (*delivery)->hold_back({std::move(which), kClassifiedBody, std::move(is_good)});
}

Classified RequestAttempts::classified(const Outcome& outcome, WallTime wall_now) const {
  const Observed observed(outcome, wall_now);
  const auto& policy = chosen_.policy();
  return options_.classify ? options_.classify(policy, request(), observed)
                           : classify(policy, observed);
}

}  // namespace httpretry
