#include "retry_run.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/retry/error_codes.hpp"

#include <algorithm>

namespace httpretry {
namespace {

bool reads_only(const Request& request) {
  const auto& method = request.method();
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
         method == "QUERY";
}

// A policy without a name is known by the entry it stands in: two of them are not one.
std::string place_of(const ChosenPolicy& chosen) {
  if (chosen.own != nullptr) {
    return "policy at " + std::to_string(reinterpret_cast<std::uintptr_t>(chosen.own));
  }
  if (!chosen.name.empty()) return "policy " + std::string(chosen.name);
  if (!chosen.identity.empty()) return "policy of " + std::string(chosen.identity);
  return "the default policy";
}

}  // namespace

void give_key(const RetryPolicy& policy, Request& request) {
  const auto& name = policy.idempotency_key;
  if (name.empty()) return;
  const bool needs_one = request.method() == "POST" || request.method() == "PATCH";
  if (needs_one && !request.headers().contains(name)) {
    request.set_header(name, new_idempotency_key());
  }
  if (request.headers().contains(name) && !request.options().repeatable) {
    request.edit_options().repeatable = true;
  }
}

RetryRun::RetryRun(const RetryOptions& options, const ChosenPolicy& chosen, Budgets& budgets,
                   const Request& request, Call& call)
    : options_(options),
      policy_(chosen.policy),
      request_(request),
      call_(call),
      started_(call.scheduler().now()),
      budget_(shared_budget(budgets, chosen), options.budget.get(), request, started_),
      progress_(request.repeatable(), reads_only(request)) {}

std::shared_ptr<SharedBudget> RetryRun::shared_budget(Budgets& budgets,
                                                      const ChosenPolicy& chosen) const {
  const bool has_budget = policy_->budget.kind != BudgetPolicy::Kind::None && !options_.budget;
  if (!has_budget && !policy_->adaptive) return nullptr;
  const auto scope = policy_->budget.scope;
  if (scope == BudgetPolicy::Scope::Policy) {
    return budgets.at(place_of(chosen), policy_->budget, started_);
  }
  // What no entry of the file names has no endpoint to share with: its host stands for one.
  if (scope == BudgetPolicy::Scope::Endpoint && !chosen.identity.empty()) {
    return budgets.at(std::string(chosen.identity), policy_->budget, started_);
  }
  const auto& url = request_.parsed_url();
  return url ? budgets.at(url->origin(), policy_->budget, started_) : nullptr;
}

int RetryRun::next_number() const { return static_cast<int>(call_.history().attempts.size()) + 1; }

Duration RetryRun::wait_for_rate() {
  return policy_->adaptive ? budget_.wait_for_rate(now()) : Duration::zero();
}

bool RetryRun::too_long(Duration wait) const {
  return policy::too_late(*policy_, started_, call_.deadline(), later(now(), wait));
}

Request RetryRun::begin_attempt() {
  began_ = now();
  exchanges_before_ = Call::State::of(call_).exchanges;
  budget_.begin_attempt();
  call_.emit(&Observer::attempt_started, request_, next_number());
  if (request_.options().sink) hold_back_what_rules_read();
  Request attempt = request_;
  auto& options = attempt.edit_options();
  if (fresh_connection_) options.fresh_connection = true;
  if (!options.connect_timeout) options.connect_timeout = policy_->connect_timeout;
  options.stall_timeout = std::min(options.stall_timeout, policy_->stall_timeout);
  // The elapsed time ends an attempt only until its headers are there, and not one that began
  // behind it, as two of its rules allow.
  const auto end = later(started_, policy_->max_elapsed_time);
  const bool bounded = end > began_ || policy_->elapsed_rule == ElapsedRule::IncludeWait;
  if (bounded) options.answer_by = std::min(options.answer_by, end);
  return attempt;
}

// What a rule of the policy reads must not be with the user when the rule says that it is a
// failure.
void RetryRun::hold_back_what_rules_read() {
  const auto delivery = Delivery::of(request_, call_);
  if (!delivery) return;  // the transport meets the same error, and answers with it
  auto which = [policy = policy_](int status, const Headers& headers) {
    return policy::looks_into(policy->retry_on, status, headers);
  };
  auto is_good = [this](const Response& begun) {  // only called while an attempt of ours runs
    const Outcome outcome(begun);
    return classified(Observed(outcome, call_.scheduler().wall_now())).cls == Class::Success;
  };
  (*delivery)->hold_back({std::move(which), kClassifiedBody, std::move(is_good)});
}

bool RetryRun::owes_body() const {
  if (!request_.options().sink || !succeeded_) return false;
  const auto* delivery = Delivery::begun(call_);
  return delivery != nullptr && delivery->held();
}

Time RetryRun::attempt_deadline() const { return later(now(), policy_->attempt_timeout); }

bool RetryRun::judge(const Outcome& outcome) {
  progress_.facts().replayable = request_.body().replayable();
  if (request_.options().sink) {
    const auto* delivery = Delivery::begun(call_);
    progress_.facts().streaming = delivery != nullptr && !delivery->can_go_on();
  }
  last_ = outcome ? outcome->exchange : outcome.error().exchange;
  if (resend_at_once(outcome)) return true;

  const auto wall = call_.scheduler().wall_now();
  const auto found = classified(Observed(outcome, wall));
  if (policy_->adaptive) budget_.heard(now(), found.cls == Class::Throttle);
  const auto decision = decide_after(found, wall);
  write_down(outcome, found, decision);

  progress_.decided(found, decision);
  fresh_connection_ = decision.fresh_connection;
  succeeded_ = found.cls == Class::Success;
  wait_ = decision.wait;
  return decision.retry;
}

Classified RetryRun::classified(const Observed& observed) const {
  return options_.classify ? options_.classify(*policy_, request_, observed)
                           : classify(*policy_, observed);
}

Decision RetryRun::decide_after(const Classified& classified, WallTime wall) {
  const auto cls = classified.cls;
  progress_.ended(cls);
  auto& facts = progress_.facts();
  const auto random = call_.random();
  if (options_.backoff && cls != Class::Success && cls != Class::Permanent) {
    const auto own = options_.backoff(*policy_, classified, facts, random);
    facts.own_wait = std::max(own, Duration::zero());
  }
  const Clocks clocks{now(), started_, call_.deadline(), wall};
  auto decision = decide(*policy_, classified, facts, clocks, random);
  // The budget is last, so that nothing is taken for a retry that another limit forbids; and before
  // the wait, so that a thousand calls that fail together do not all find it full.
  if (decision.retry && !decision.poll && !budget_.take(classified, now())) {
    decision = over_budget(decision, classified, facts, clocks);
  }
  if (!decision.retry) budget_.settle(cls, now());
  return decision;
}

Error RetryRun::canceled() {
  budget_.cancel(now());
  call_.history().stop_reason = Reason::Canceled;
  const auto& url = request_.parsed_url();
  Error error(Errc::Canceled, request_.method() + " " + (url ? url->without_secrets() : "") +
                                  ": canceled while waiting to send again");
  if (last_) error.exchange = *last_;
  return error;
}

Outcome RetryRun::held_back(Duration wait, std::optional<Outcome> last) {
  budget_.cancel(now());
  auto& history = call_.history();
  history.stop_reason = Reason::ElapsedExhausted;
  history.detail = policy::too_late_text(wait);
  if (last) return *std::move(last);
  return Error(Errc::Timeout, history.detail);
}

// A pooled connection that was closed while it was idle is nobody's failure: once in a call, what
// may be repeated is sent on a new one without waiting, and does not count as a retry.
bool RetryRun::resend_at_once(const Outcome& outcome) {
  if (outcome || !outcome.error().exchange.stale_connection || resent_) return false;
  const auto& facts = progress_.facts();
  if (!facts.repeatable || !facts.replayable || policy_->repeat == Repeat::Never) return false;
  if (!request_.options().retry || call_.stop().stop_requested()) return false;
  resent_ = true;
  if (outcome.error().exchange.sent != Sent::Never) progress_.maybe_executed();
  fresh_connection_ = true;
  wait_ = Duration::zero();
  auto attempt = attempt_from(outcome);
  attempt.cls = Class::Transport;
  attempt.rule = "stale connection";
  attempt.retried = true;
  attempt.backoff = attempt.wait = Duration::zero();
  record(std::move(attempt));
  return true;
}

Attempt RetryRun::attempt_from(const Outcome& outcome) const {
  const auto& exchange = outcome ? outcome->exchange : outcome.error().exchange;
  Attempt attempt;
  attempt.number = next_number();
  attempt.start = began_ - call_.started();
  attempt.duration = now() - began_;
  attempt.queued = exchange.timings.queued;
  attempt.status = outcome ? outcome->status : outcome.error().status;
  if (!outcome) {
    attempt.error = outcome.error().code;
    attempt.curl_code = outcome.error().curl_code;
    attempt.error_message = outcome.error().message;
  }
  const bool begun = Call::State::of(call_).exchanges != exchanges_before_;
  attempt.sent = begun ? exchange.sent : Sent::Never;
  attempt.wire_sends = exchange.wire_sends;
  attempt.budget_left = budget_.left(now());
  return attempt;
}

void RetryRun::write_down(const Outcome& outcome, const Classified& classified,
                          const Decision& decision) {
  auto attempt = attempt_from(outcome);
  attempt.cls = classified.cls;
  attempt.rule = to_string(classified.rule);
  policy::write_down(decision, policy_->repeat, attempt, call_.history());
  record(std::move(attempt));
}

void RetryRun::record(Attempt attempt) {
  call_.history().attempts.push_back(std::move(attempt));
  call_.emit(&Observer::attempt_ended, request_, call_.history().attempts.back());
}

}  // namespace httpretry
