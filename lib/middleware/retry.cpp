// The middleware `retry`: finds the policy of a request, and does what the RetryLoop says.
#include "budgets.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/retry/error_codes.hpp"
#include "lib/retry/policy_limits.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <algorithm>
#include <atomic>

namespace httpretry {
namespace {

// The policy of a request, and the budget that it shares with other requests.
struct ChosenPolicy {
  std::shared_ptr<const RetryPolicy> policy;
  std::shared_ptr<SharedBudget> budget;  // nullptr where there is none
};

// Where a policy was found: that names what it shares a budget with.
struct PolicyOrigin {
  // The request's own policy, if it has one: shares with requests that have the same object.
  const void* own = nullptr;
  std::string_view identity;  // of the endpoint; empty where none matched
  std::string_view name;      // of the policy; may be empty
};

bool changes_nothing(const Request& request) {
  const auto& method = request.method();
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
         method == "QUERY";
}

// The key of a budget that all requests with one policy share. A policy without a name is known by
// the endpoint that it belongs to.
std::string key_of_policy(const PolicyOrigin& origin) {
  if (origin.own != nullptr) {
    return "policy at " + std::to_string(reinterpret_cast<std::uintptr_t>(origin.own));
  }
  if (!origin.name.empty()) return "policy " + std::string(origin.name);
  if (!origin.identity.empty()) return "policy of " + std::string(origin.identity);
  return "the default policy";
}

// Gives a POST or PATCH the idempotency key that the policy asks for, if it has none. A request
// with a key is repeatable.
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

// The attempts of one request: what RetryLoop is given, and what is sent.
class RequestAttempts {
 public:
  // All of these must outlive this.
  RequestAttempts(const RetryOptions& options, ChosenPolicy& chosen, const Request& request,
                  Call& call)
      : options_(options),
        policy_(chosen.policy),
        request_(request),
        call_(call),
        budget_(std::move(chosen.budget), policy_->adaptive, now(), options.budget.get(), &request),
        loop_(*policy_, budget_, call.history(), loop_options()) {}
  RequestAttempts(const RequestAttempts&) = delete;
  RequestAttempts& operator=(const RequestAttempts&) = delete;

  [[nodiscard]] RetryStep begin() { return loop_.begin(now()); }

  // The request as this attempt sends it. Tells the observers.
  Request prepare(const RetryStep& step) {
    exchanges_before_ = Call::State::of(call_).exchanges;
    call_.emit(&Observer::attempt_started, request_, step.number);
    if (request_.options().sink) hold_back_what_rules_read();
    Request attempt = request_;
    auto& options = attempt.edit_options();
    if (step.fresh_connection) options.fresh_connection = true;
    if (!options.connect_timeout) options.connect_timeout = policy_->connect_timeout;
    options.stall_timeout = std::min(options.stall_timeout, policy_->stall_timeout);
    options.response_timeout = std::min(options.response_timeout, policy_->response_timeout);
    options.respond_by = std::min(options.respond_by, step.respond_by);
    return attempt;
  }

  // As RetryLoop's. Classifies the outcome and tells the observers.
  RetryStep end(const Outcome& outcome) {
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
      // What went to a sink was judged by its beginning.
      const bool gone = outcome && outcome->delivered > 0 && judged_;
      const auto found = gone ? *judged_ : classified(outcome, ended.wall_now);
      step = loop_.end(ended, found, to_string(found.rule));
    }
    call_.emit(&Observer::attempt_ended, request_, call_.history().attempts.back());
    return *step;
  }

  // As RetryLoop's. Returns the outcome of the call.
  Error cancel() {
    loop_.cancel(now());
    const auto& url = request_.parsed_url();
    Error error(Errc::Canceled, request_.method() + " " + (url ? url->without_secrets() : "") +
                                    ": canceled while waiting to retry");
    if (last_) error.exchange = *last_;
    return error;
  }

  // The last attempt was a success, and the request's sink has not got its body yet.
  [[nodiscard]] bool owes_body() const {
    const auto& attempts = call_.history().attempts;
    if (!request_.options().sink || attempts.back().cls != Class::Success) return false;
    const auto* delivery = Delivery::begun(call_);
    return delivery != nullptr && delivery->held();
  }

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }

  [[nodiscard]] RetryLoop::Options loop_options() const {
    RetryLoop::Options options;
    options.call_started = call_.started();
    options.started = now();
    options.deadline = std::min(call_.deadline(), request_.options().respond_by);
    options.repeatable = request_.repeatable();
    options.changes_nothing = changes_nothing(request_);
    if (options_.backoff) options.backoff = &options_.backoff;
    return options;
  }

  // A rule of the policy may call a response a failure because of its body. Such a body must not
  // reach the user before it is judged.
  void hold_back_what_rules_read() {
    const auto delivery = Delivery::of(request_, call_);
    if (!delivery) return;  // the transport will find the same error, and return it
    const bool all = options_.classify != nullptr;  // we do not know what it reads
    auto which = [policy = policy_, all](int status, const Headers& headers) {
      return all || policy::looks_into(policy->retry_on, status, headers);
    };
    judged_.reset();
    auto is_good = [this](const Response& begun) {  // only called while an attempt of ours runs
      judged_ = classified(Outcome(begun), call_.scheduler().wall_now());
      return judged_->cls == Class::Success;
    };
    (*delivery)->hold_back({std::move(which), kClassifiedBody, std::move(is_good)});
  }

  [[nodiscard]] Classified classified(const Outcome& outcome, WallTime wall_now) const {
    const Observed observed(outcome, wall_now);
    return options_.classify ? options_.classify(*policy_, request_, observed)
                             : classify(*policy_, observed);
  }

  const RetryOptions& options_;
  const std::shared_ptr<const RetryPolicy>& policy_;
  const Request& request_;
  Call& call_;
  BudgetUse budget_;
  RetryLoop loop_;
  std::optional<Exchange> last_;  // of the attempt before the wait
  // This attempt's, of the beginning of a body that then went to the sink.
  std::optional<Classified> judged_;
  int exchanges_before_ = 0;  // the attempt
};

std::shared_ptr<const RetryPolicy> without_retries(const RetryPolicy& policy) {
  auto once = std::make_shared<RetryPolicy>(policy);
  once->max_attempts = 1;
  once->retry_on.pending.reset();
  return once;
}

PolicySource for_all_requests(RetryPolicy policy) {
  ResolvedPolicy resolved;
  resolved.policy = std::make_shared<const RetryPolicy>(std::move(policy));
  return PolicySet(std::move(resolved));
}

class Retry final : public Middleware {
 public:
  explicit Retry(RetryOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const override { return "retry"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    if (const auto& own = request.options().policy) {
      auto problem = policy::problem_of(*own);
      if (!problem.empty()) {
        call.history().stop_reason = Reason::NotRetryable;
        co_return Error(Errc::InvalidRequest, std::move(problem));
      }
    }
    auto chosen = choose(request, call);
    add_idempotency_key(*chosen.policy, request);
    RequestAttempts attempts(options_, chosen, request, call);
    std::optional<Outcome> last;
    auto step = attempts.begin();
    while (step.kind != RetryStep::Kind::Stop) {
      if (step.kind == RetryStep::Kind::Send) {
        Call branch = Call::State::attempt(call, step.until);
        last = co_await next(attempts.prepare(step), branch);
        step = attempts.end(*last);
      } else {
        if (!chosen.policy->adaptive) last.reset();  // a call that waits holds no response
        const bool waited = co_await call.scheduler().sleep_until(step.until, call.stop());
        if (!waited) co_return attempts.cancel();
        step = attempts.begin();
      }
    }
    if (!last) co_return Error(Errc::Timeout, call.history().detail);
    if (!attempts.owes_body()) co_return *std::move(last);
    Outcome delivered = co_await Delivery::deliver_judged(request, call, *std::move(last));
    co_return delivered;
  }

 private:
  [[nodiscard]] ChosenPolicy choose(const Request& request, const Call& call) {
    const auto now = call.scheduler().now();
    const auto& url = request.parsed_url();
    if (const auto& own = request.options().policy) {
      return with_budget(own, {own.get(), {}, {}}, request, now);
    }
    if (!url) return {std::make_shared<const RetryPolicy>(), nullptr};  // will not be sent
    const auto current = policies_of(call).current(now);
    if (current.reload) report(call, *current.reload);
    const auto& resolved = current.policies.find(request.method(), *url);
    return with_budget(resolved.policy, {nullptr, resolved.identity, resolved.name}, request, now);
  }

  [[nodiscard]] ChosenPolicy with_budget(const std::shared_ptr<const RetryPolicy>& policy,
                                         const PolicyOrigin& origin, const Request& request,
                                         Time now) {
    auto budget = find_budget(*policy, origin, request, now);
    return {request.options().retry ? policy : without_retries(*policy), std::move(budget)};
  }

  [[nodiscard]] std::shared_ptr<SharedBudget> find_budget(const RetryPolicy& policy,
                                                          const PolicyOrigin& origin,
                                                          const Request& request, Time now) {
    const auto& budget = policy.budget;
    const bool has_budget = budget.kind != BudgetPolicy::Kind::None && !options_.budget;
    if (!has_budget && !policy.adaptive) return nullptr;
    if (budget.scope == BudgetPolicy::Scope::Policy) {
      return budgets_.at(key_of_policy(origin), budget, now);
    }
    // A request that no endpoint of the policy file matches shares with its host.
    if (budget.scope == BudgetPolicy::Scope::Endpoint && !origin.identity.empty()) {
      return budgets_.at(std::string(origin.identity), budget, now);
    }
    const auto& url = request.parsed_url();
    return url ? budgets_.at(url->origin(), budget, now) : nullptr;
  }

  [[nodiscard]] const PolicySource& policies_of(const Call& call) const {
    if (options_.policies) return *options_.policies;
    return call.policies() != nullptr ? *call.policies() : standard_;
  }

  // Tells the observers of each reload once, whichever call sees it first.
  void report(const Call& call, const PolicyReload& reload) {
    auto reported = reported_.load(std::memory_order_relaxed);
    while (reported < reload.number) {
      if (reported_.compare_exchange_weak(reported, reload.number, std::memory_order_relaxed)) {
        return call.emit(&Observer::policies_reloaded, reload);
      }
    }
  }

  const RetryOptions options_;
  const PolicySource standard_{PolicySet()};
  std::atomic<std::uint64_t> reported_ = 0;  // PolicyReload::number of the latest
  Budgets budgets_;
};

}  // namespace

RetryBudget::~RetryBudget() = default;

MiddlewarePtr retry(RetryOptions options) { return std::make_shared<Retry>(std::move(options)); }

MiddlewarePtr retry(PolicySource policies) {
  RetryOptions options;
  options.policies = std::move(policies);
  return retry(std::move(options));
}

MiddlewarePtr retry(PolicySet policies) { return retry(PolicySource(std::move(policies))); }
MiddlewarePtr retry(Result<PolicySet> loaded) { return retry(std::move(loaded).value()); }
MiddlewarePtr retry(Result<PolicySource> watched) { return retry(std::move(watched).value()); }

MiddlewarePtr retry(RetryPolicy policy) { return retry(for_all_requests(std::move(policy))); }

}  // namespace httpretry
