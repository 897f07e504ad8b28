#include "retry_run.hpp"

#include <algorithm>

namespace httpretry {
namespace {

bool reads_only(const Request& request) {
  const auto& method = request.method();
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
         method == "QUERY";
}

}  // namespace

RetryRun::RetryRun(const RetryOptions& options, ChosenPolicy chosen, Budgets& budgets,
                   Request& request, Call& call)
    : options_(options),
      policy_(std::move(chosen.policy)),
      call_(call),
      started_(call.scheduler().now()),
      budget_(shared_budget(budgets, chosen, request), started_) {
  give_key(request);
  facts_.failures = 0;
  facts_.repeatable = request.repeatable();
}

RetryRun::~RetryRun() = default;

std::shared_ptr<SharedBudget> RetryRun::shared_budget(Budgets& budgets, const ChosenPolicy& chosen,
                                                      const Request& request) const {
  if (policy_->budget.kind == BudgetPolicy::Kind::None && !policy_->adaptive) return nullptr;
  switch (policy_->budget.scope) {
    case BudgetPolicy::Scope::Endpoint:
      return budgets.at("endpoint " + chosen.endpoint, policy_->budget, started_);
    case BudgetPolicy::Scope::Policy:
      return budgets.at("policy " + chosen.name, policy_->budget, started_);
    case BudgetPolicy::Scope::Host: break;
  }
  const auto& url = request.parsed_url();
  return url ? budgets.at(url->origin(), policy_->budget, started_) : nullptr;
}

void RetryRun::give_key(Request& request) const {
  const auto& name = policy_->idempotency_key;
  if (name.empty()) return;
  const bool needs_one = request.method() == "POST" || request.method() == "PATCH";
  if (needs_one && !request.headers().contains(name)) {
    request.set_header(name, new_idempotency_key());
  }
  if (request.headers().contains(name) && !request.options().repeatable) {
    request.edit_options().repeatable = true;
  }
}

int RetryRun::next_number() const { return static_cast<int>(call_.history().attempts.size()) + 1; }

Duration RetryRun::wait_for_rate() {
  return policy_->adaptive ? budget_.wait_for_rate(now()) : Duration::zero();
}

Request RetryRun::begin_attempt(const Request& request) {
  began_ = now();
  call_.emit(&Observer::attempt_started, request, next_number());
  Request attempt = request;
  auto& options = attempt.edit_options();
  if (fresh_connection_) options.fresh_connection = true;
  if (!options.connect_timeout) options.connect_timeout = policy_->connect_timeout;
  options.stall_timeout = std::min(options.stall_timeout, policy_->stall_timeout);
  // The elapsed time ends an attempt only until its headers are there, and not one that began
  // behind it, as two of its rules allow.
  const auto end = later(started_, policy_->max_elapsed_time);
  if (end > began_) options.answer_by = std::min(options.answer_by, end);
  return attempt;
}

Time RetryRun::attempt_deadline() const { return later(now(), policy_->attempt_timeout); }

bool RetryRun::judge(const Request& request, const Outcome& outcome) {
  facts_.replayable = request.body().replayable();
  last_ = outcome ? outcome->exchange : outcome.error().exchange;
  if (resend_at_once(request, outcome)) return true;

  const auto wall = call_.scheduler().wall_now();
  const Observed observed(outcome, wall);
  const auto classified = options_.classify ? options_.classify(*policy_, request, observed)
                                            : classify(*policy_, observed);
  if (policy_->adaptive) budget_.heard(now(), classified.cls == Class::Throttle);
  const auto decision = decide_after(request, classified, wall);
  write_down(request, outcome, classified, decision);

  facts_.once_used = facts_.once_used || classified.once;
  if (!reads_only(request)) {
    facts_.maybe_executed = facts_.maybe_executed || may_have_executed(classified);
  }
  facts_.previous = decision.backoff;
  fresh_connection_ = decision.fresh_connection;
  wait_ = decision.wait;
  return decision.retry;
}

Decision RetryRun::decide_after(const Request& request, const Classified& classified,
                                WallTime wall) {
  if (classified.cls == Class::Pending) {
    ++facts_.polls;
  } else if (classified.cls != Class::Success) {
    ++facts_.failures;
  }
  const auto random = call_.random();
  if (options_.backoff) facts_.own_wait = options_.backoff(*policy_, classified, facts_, random);
  const Clocks clocks{now(), started_, call_.deadline(), wall};
  auto decision = decide(*policy_, classified, facts_, clocks, random);
  if (decision.retry && !decision.poll && !may_take(request, classified)) {
    decision.retry = false;
    decision.reason = Reason::BudgetExhausted;
  }
  if (!decision.retry) settle(request, classified.cls == Class::Success);
  return decision;
}

// Last, so that nothing is taken for a retry that another limit forbids; before the wait, so that a
// thousand calls that fail together do not all find the budget full.
bool RetryRun::may_take(const Request& request, const Classified& classified) {
  if (options_.budget) return options_.budget->take(request, classified, now());
  return budget_.take(classified.cls, classified.timeout, now());
}

void RetryRun::settle(const Request& request, bool success) {
  if (settled_) return;
  settled_ = true;
  if (options_.budget) return options_.budget->settle(request, success, now());
  budget_.settle(success, now());
}

Error RetryRun::canceled(const Request& request) {
  if (options_.budget && last_) {
    options_.budget->give_back(request, now());
  } else {
    budget_.cancel(now());
  }
  settle(request, false);
  call_.history().stop_reason = Reason::Canceled;
  Error error(Errc::Canceled, "canceled while waiting to send again");
  if (last_) error.exchange = *last_;
  return error;
}

// A pooled connection that was closed while it was idle is nobody's failure: once in a call, what
// may be repeated is sent on a new one without waiting, and does not count as a retry.
bool RetryRun::resend_at_once(const Request& request, const Outcome& outcome) {
  if (outcome || !outcome.error().exchange.stale_connection || resent_) return false;
  if (!facts_.repeatable || !facts_.replayable || policy_->repeat == Repeat::Never) return false;
  if (!request.options().retry || call_.stop().stop_requested()) return false;
  resent_ = true;
  fresh_connection_ = true;
  wait_ = Duration::zero();
  auto attempt = attempt_from(outcome);
  attempt.cls = Class::Transport;
  attempt.rule = "stale connection";
  attempt.retried = true;
  attempt.backoff = attempt.wait = Duration::zero();
  record(request, std::move(attempt));
  return true;
}

Attempt RetryRun::attempt_from(const Outcome& outcome) const {
  const auto& exchange = outcome ? outcome->exchange : outcome.error().exchange;
  Attempt attempt;
  attempt.number = next_number();
  attempt.start = began_ - call_.started();
  attempt.duration = now() - began_;
  attempt.status = outcome ? outcome->status : outcome.error().status;
  if (!outcome) {
    attempt.error = outcome.error().code;
    attempt.curl_code = outcome.error().curl_code;
    attempt.error_message = outcome.error().message;
  }
  attempt.sent = exchange.sent;
  attempt.wire_sends = exchange.wire_sends;
  attempt.budget_left = budget_.left(now());
  return attempt;
}

void RetryRun::write_down(const Request& request, const Outcome& outcome,
                          const Classified& classified, const Decision& decision) {
  auto attempt = attempt_from(outcome);
  attempt.cls = classified.cls;
  attempt.rule = to_string(classified.rule);
  attempt.retried = decision.retry;
  attempt.ambiguous = decision.ambiguous;
  if (decision.server_delay) {
    attempt.server_delay = decision.server_delay;
    attempt.server_delay_source = to_string(decision.source);
  }
  if (decision.retry) {
    attempt.backoff = decision.backoff;
    attempt.wait = decision.wait;
  } else {
    auto& history = call_.history();
    history.stop_reason = decision.reason;
    history.retry_at = decision.retry_at;
    history.detail = limit_text(decision);
  }
  record(request, std::move(attempt));
}

void RetryRun::record(const Request& request, Attempt attempt) {
  call_.history().attempts.push_back(std::move(attempt));
  call_.emit(&Observer::attempt_ended, request, call_.history().attempts.back());
}

}  // namespace httpretry
