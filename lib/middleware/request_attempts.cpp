#include "request_attempts.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/retry/error_codes.hpp"

#include <algorithm>

namespace httpretry {
namespace {

bool changes_nothing(const Request& request) {
  const auto& method = request.method();
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
         method == "QUERY";
}

// The key of a budget that all requests with one policy share. A policy without a name is known by
// the endpoint that it belongs to.
std::string key_of_policy(const ChosenPolicy& chosen) {
  if (chosen.own != nullptr) {
    return "policy at " + std::to_string(reinterpret_cast<std::uintptr_t>(chosen.own));
  }
  if (!chosen.name.empty()) return "policy " + std::string(chosen.name);
  if (!chosen.identity.empty()) return "policy of " + std::string(chosen.identity);
  return "the default policy";
}

}  // namespace

void add_idempotency_key(const RetryPolicy& policy, Request& request) {
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

RequestAttempts::RequestAttempts(const RetryOptions& options, const ChosenPolicy& chosen,
                                 Budgets& budgets, const Request& request, Call& call)
    : options_(options),
      policy_(chosen.policy),
      request_(request),
      call_(call),
      budget_(find_budget(budgets, chosen), policy_->adaptive, now(), options.budget.get(),
              &request),
      loop_(*policy_, budget_, call.history(), loop_options()) {}

RetryLoop::Options RequestAttempts::loop_options() const {
  RetryLoop::Options options;
  options.call_started = call_.started();
  options.started = now();
  options.deadline = call_.deadline();
  options.repeatable = request_.repeatable();
  options.changes_nothing = changes_nothing(request_);
  if (options_.backoff) options.backoff = &options_.backoff;
  return options;
}

std::shared_ptr<SharedBudget> RequestAttempts::find_budget(Budgets& budgets,
                                                           const ChosenPolicy& chosen) const {
  const auto& policy = policy_->budget;
  const bool has_budget = policy.kind != BudgetPolicy::Kind::None && !options_.budget;
  if (!has_budget && !policy_->adaptive) return nullptr;
  if (policy.scope == BudgetPolicy::Scope::Policy) {
    return budgets.at(key_of_policy(chosen), policy, now());
  }
  // A request that no endpoint of the policy file matches shares with its host.
  if (policy.scope == BudgetPolicy::Scope::Endpoint && !chosen.identity.empty()) {
    return budgets.at(std::string(chosen.identity), policy, now());
  }
  const auto& url = request_.parsed_url();
  return url ? budgets.at(url->origin(), policy, now()) : nullptr;
}

Request RequestAttempts::prepare(const RetryStep& step) {
  exchanges_before_ = Call::State::of(call_).exchanges;
  call_.emit(&Observer::attempt_started, request_, step.number);
  if (request_.options().sink) hold_back_what_rules_read();
  Request attempt = request_;
  auto& options = attempt.edit_options();
  if (step.fresh_connection) options.fresh_connection = true;
  if (!options.connect_timeout) options.connect_timeout = policy_->connect_timeout;
  options.stall_timeout = std::min(options.stall_timeout, policy_->stall_timeout);
  options.respond_by = std::min(options.respond_by, step.respond_by);
  return attempt;
}

// A rule of the policy may call a response a failure because of its body. Such a body must not
// reach the user before it is judged.
void RequestAttempts::hold_back_what_rules_read() {
  const auto delivery = Delivery::of(request_, call_);
  if (!delivery) return;  // the transport will find the same error, and return it
  auto which = [policy = policy_](int status, const Headers& headers) {
    return policy::looks_into(policy->retry_on, status, headers);
  };
  auto is_good = [this](const Response& begun) {  // only called while an attempt of ours runs
    return classified(Outcome(begun), call_.scheduler().wall_now()).cls == Class::Success;
  };
  (*delivery)->hold_back({std::move(which), kClassifiedBody, std::move(is_good)});
}

RetryStep RequestAttempts::end(const Outcome& outcome) {
  last_ = exchange_of(outcome);
  const auto* delivery = request_.options().sink ? Delivery::begun(call_) : nullptr;
  EndedAttempt ended;
  ended.now = now();
  ended.wall_now = call_.scheduler().wall_now();
  ended.outcome = &outcome;
  ended.begun = Call::State::of(call_).exchanges != exchanges_before_;
  ended.replayable = request_.body().replayable();
  ended.streaming = delivery != nullptr && !delivery->can_retry();

  const bool may_resend = request_.options().retry && !call_.stop().stop_requested();
  auto step = may_resend ? loop_.resend(ended) : std::nullopt;
  if (!step) {
    ended.random = call_.random();
    const auto found = classified(outcome, ended.wall_now);
    step = loop_.end(ended, found, to_string(found.rule));
  }
  call_.emit(&Observer::attempt_ended, request_, call_.history().attempts.back());
  return *step;
}

Classified RequestAttempts::classified(const Outcome& outcome, WallTime wall_now) const {
  const Observed observed(outcome, wall_now);
  return options_.classify ? options_.classify(*policy_, request_, observed)
                           : classify(*policy_, observed);
}

bool RequestAttempts::owes_body() const {
  const auto& attempts = call_.history().attempts;
  if (!request_.options().sink || attempts.back().cls != Class::Success) return false;
  const auto* delivery = Delivery::begun(call_);
  return delivery != nullptr && delivery->held();
}

Error RequestAttempts::cancel() {
  loop_.cancel(now());
  const auto& url = request_.parsed_url();
  Error error(Errc::Canceled, request_.method() + " " + (url ? url->without_secrets() : "") +
                                  ": canceled while waiting to retry");
  if (last_) error.exchange = *last_;
  return error;
}

Error RequestAttempts::never_sent() const { return Error(Errc::Timeout, call_.history().detail); }

}  // namespace httpretry
