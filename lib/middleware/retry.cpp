// The retry stage: send, look, decide, wait, again. What to make of an outcome and what to do then
// are pure functions of the policy layer; here is only the loop around them.
#include "idempotency_key.hpp"

#include <httpretry/builtin.hpp>
#include <httpretry/classify.hpp>
#include <httpretry/retry.hpp>

namespace httpretry {
namespace {

std::shared_ptr<const RetryPolicy> sent_once(const RetryPolicy& policy) {
  auto once = std::make_shared<RetryPolicy>(policy);
  once->max_attempts = 1;
  once->retry_on.pending.reset();
  return once;
}

// One request on its way through the retry stage: what is the same for all its attempts, and what
// is counted from one to the next.
class Run {
 public:
  Run(std::shared_ptr<const RetryPolicy> policy, Request& request, Call& call)
      : policy_(std::move(policy)), call_(call), started_(call.scheduler().now()) {
    give_key(request);
    facts_.failures = 0;
    facts_.repeatable = request.repeatable();
  }

  // The request as this attempt sends it.
  [[nodiscard]] Request attempt_of(const Request& request) const {
    Request attempt = request;
    auto& options = attempt.edit_options();
    if (fresh_connection_) options.fresh_connection = true;
    if (!options.connect_timeout) options.connect_timeout = policy_->connect_timeout;
    options.stall_timeout = std::min(options.stall_timeout, policy_->stall_timeout);
    // The elapsed time ends an attempt only until its headers are there, and not one that began
    // behind it, as two of its rules allow.
    const auto end = later(started_, policy_->max_elapsed_time);
    if (end > now()) options.answer_by = std::min(options.answer_by, end);
    return attempt;
  }
  [[nodiscard]] Time attempt_deadline() const { return later(now(), policy_->attempt_timeout); }
  [[nodiscard]] int next_number() const {
    return static_cast<int>(call_.history().attempts.size()) + 1;
  }
  void begin() { began_ = now(); }

  // Whether to send again, after `wait()`; writes the attempt down.
  bool judge(const Request& request, const Outcome& outcome) {
    facts_.replayable = request.body().replayable();
    if (resend_at_once(request, outcome)) return true;

    const auto wall = call_.scheduler().wall_now();
    const auto classified = classify(*policy_, Observed(outcome, wall));
    if (classified.cls == Class::Pending) {
      ++facts_.polls;
    } else if (classified.cls != Class::Success) {
      ++facts_.failures;
    }
    const Clocks clocks{now(), started_, call_.deadline(), wall};
    const auto decision = decide(*policy_, classified, facts_, clocks, call_.random());
    write_down(request, outcome, classified, decision);

    facts_.once_used = facts_.once_used || classified.once;
    facts_.maybe_executed = facts_.maybe_executed || may_have_executed(classified);
    facts_.previous = decision.backoff;
    fresh_connection_ = decision.fresh_connection;
    wait_ = decision.wait;
    return decision.retry;
  }
  [[nodiscard]] Duration wait() const { return wait_; }

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }

  void give_key(Request& request) const {
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

  // A pooled connection that was closed while it was idle is nobody's failure: once in a call, what
  // may be repeated is sent on a new one without waiting, and does not count as a retry.
  bool resend_at_once(const Request& request, const Outcome& outcome) {
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

  [[nodiscard]] Attempt attempt_from(const Outcome& outcome) const {
    const auto& exchange = outcome ? outcome->exchange : outcome.error().exchange;
    Attempt attempt;
    attempt.number = next_number();
    attempt.start = began_ - call_.started();
    attempt.duration = now() - began_;
    attempt.status = outcome ? outcome->status : outcome.error().status;
    if (!outcome) attempt.error = outcome.error().code;
    attempt.sent = exchange.sent;
    attempt.wire_sends = exchange.wire_sends;
    return attempt;
  }

  void write_down(const Request& request, const Outcome& outcome, const Classified& classified,
                  const Decision& decision) {
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

  void record(const Request& request, Attempt attempt) {
    call_.history().attempts.push_back(std::move(attempt));
    call_.emit(&Observer::attempt_ended, request, call_.history().attempts.back());
  }

  std::shared_ptr<const RetryPolicy> policy_;
  Call& call_;
  Time started_;
  Time began_{};
  AttemptFacts facts_;
  Duration wait_{};
  bool fresh_connection_ = false;
  bool resent_ = false;
};

class Retry final : public Middleware {
 public:
  explicit Retry(RetryPolicy policy) : policy_(std::make_shared<RetryPolicy>(std::move(policy))) {}
  [[nodiscard]] std::string_view name() const override { return "retry"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    auto& clock = call.scheduler();
    Run run(policy_for(request), request, call);
    for (;;) {
      call.emit(&Observer::attempt_started, request, run.next_number());
      run.begin();
      Call branch = call.with(run.attempt_deadline(), call.stop());
      Outcome outcome = co_await next(run.attempt_of(request), branch);
      if (!run.judge(request, outcome)) co_return outcome;

      const bool waited = co_await clock.sleep_until(later(clock.now(), run.wait()), call.stop());
      if (!waited) co_return canceled(outcome, call);
    }
  }

 private:
  [[nodiscard]] std::shared_ptr<const RetryPolicy> policy_for(const Request& request) const {
    const auto& own = request.options().policy;
    const auto& policy = own ? own : policy_;
    return request.options().retry ? policy : sent_once(*policy);
  }

  static Error canceled(const Outcome& last, Call& call) {
    call.history().stop_reason = Reason::Canceled;
    Error error(Errc::Canceled, "canceled while waiting to send again");
    error.exchange = last ? last->exchange : last.error().exchange;
    return error;
  }

  std::shared_ptr<const RetryPolicy> policy_;
};

}  // namespace

MiddlewarePtr retry(RetryPolicy policy) { return std::make_shared<Retry>(std::move(policy)); }

}  // namespace httpretry
