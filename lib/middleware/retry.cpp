// The middleware `retry`: finds the policy of a request, and does what the RetryLoop says.
#include "budgets.hpp"
#include "poll_url.hpp"
#include "send_again.hpp"

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
  std::shared_ptr<const ResolvedPolicy> resolved;  // nullptr where the request brought its own
  std::shared_ptr<const RetryPolicy> own;          // followed instead of the one in `resolved`
  std::shared_ptr<SharedBudget> budget;            // nullptr where there is none

  [[nodiscard]] const RetryPolicy& policy() const { return own ? *own : *resolved->policy; }
  [[nodiscard]] std::shared_ptr<const RetryPolicy> shared() const {
    return own ? own : resolved->policy;
  }
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
        chosen_(chosen),
        polls_(chosen.policy(), request, call),
        request_(polls_.request()),
        call_(call),
        budget_(std::move(chosen.budget), chosen.policy().adaptive, now(), options.budget.get(),
                &request),
        loop_(chosen.policy(), budget_, call.history(), loop_options()) {}
  RequestAttempts(const RequestAttempts&) = delete;
  RequestAttempts& operator=(const RequestAttempts&) = delete;

  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] RetryStep begin() { return loop_.begin(now()); }

  // The request as this attempt sends it. Tells the observers.
  Request prepare(const RetryStep& step) {
    const auto& policy = chosen_.policy();
    exchanges_before_ = Call::State::of(call_).exchanges;
    call_.emit(&Observer::attempt_started, request_, step.number);
    if (request_.options().sink) hold_back_what_rules_read();
    Request attempt = request_;
    auto& options = attempt.edit_options();
    if (step.fresh_connection) options.fresh_connection = true;
    if (!options.connect_timeout) options.connect_timeout = policy.connect_timeout;
    options.stall_timeout = std::min(options.stall_timeout, policy.stall_timeout);
    options.response_timeout = std::min(options.response_timeout, policy.response_timeout);
    options.respond_by = std::min(options.respond_by, step.respond_by);
    return attempt;
  }

  // `branch`: of the call, with the limits of this attempt.
  Task<Outcome> send(const RetryStep& step, Call& branch, const Next& next) {
    auto attempt = prepare(step);
    const auto* again = step.number > 1 ? call_.get<SendAgain>() : nullptr;
    if (again != nullptr && !polls_.polls()) return again->send(std::move(attempt), branch, next);
    return next(std::move(attempt), branch);
  }

  // As RetryLoop's. Classifies the outcome and tells the observers. An error takes the place of a
  // pending response that names a URL where nothing is sent.
  RetryStep end(Outcome& outcome) {
    const auto* delivery = request_.options().sink ? Delivery::begun(call_) : nullptr;
    EndedAttempt ended;
    ended.now = now();
    ended.wall_now = call_.scheduler().wall_now();
    ended.outcome = &outcome;
    ended.begun = Call::State::of(call_).exchanges != exchanges_before_;
    ended.replayable = request_.body().replayable();
    ended.streaming = delivery != nullptr && !delivery->can_retry();

    const bool may_resend =
        request_.options().retry && !Call::State::own_stop(call_).stop_requested();
    auto step = may_resend ? loop_.resend(ended) : std::nullopt;
    if (!step) {
      ended.random = call_.random();
      // What went to a sink was judged by its beginning.
      const bool gone = outcome && outcome->delivered > 0 && judged_;
      auto found = gone ? *judged_ : classified(outcome, ended.wall_now);
      if (outcome && found.cls == Class::Pending && polls_.find(outcome)) {
        ended.names_url = ended.replayable = true;
        if (!outcome) found = classify(chosen_.policy(), Observed(outcome, ended.wall_now));
      }
      step = loop_.end(ended, found, to_string(found.rule));
    }
    auto& attempt = call_.history().attempts.back();
    attempt.policy = chosen_.resolved;
    sent_once_ = true;
    call_.emit(&Observer::attempt_ended, request_, attempt);
    polls_.end_attempt(attempt.number, step->kind != RetryStep::Kind::Stop);
    return *step;
  }

  // As RetryLoop's. Returns the outcome of the call.
  Error cancel() {
    loop_.cancel(now());
    const auto& url = request_.parsed_url();
    Error error(Errc::Canceled, request_.method() + " " + (url ? url->without_secrets() : "") +
                                    ": canceled while waiting to retry");
    const auto& attempts = call_.history().attempts;
    if (sent_once_ && !attempts.empty()) error.exchange = attempts.back().exchange();
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
    auto which = [policy = chosen_.shared(), all](int status, const Headers& headers) {
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
    const auto& policy = chosen_.policy();
    return options_.classify ? options_.classify(policy, request_, observed)
                             : classify(policy, observed);
  }

  const RetryOptions& options_;
  const ChosenPolicy& chosen_;
  PollUrl polls_;
  const Request& request_;  // that is sent now
  Call& call_;
  BudgetUse budget_;
  RetryLoop loop_;
  // This attempt's, of the beginning of a body that then went to the sink.
  std::optional<Classified> judged_;
  int exchanges_before_ = 0;  // the attempt
  bool sent_once_ = false;    // an attempt of this request has ended
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
    add_idempotency_key(chosen.policy(), request);
    RequestAttempts attempts(options_, chosen, request, call);
    std::optional<Outcome> last;
    auto step = attempts.begin();
    while (step.kind != RetryStep::Kind::Stop) {
      if (step.kind == RetryStep::Kind::Send) {
        Call branch = Call::State::attempt(call, step.number, step.until);
        last = co_await attempts.send(step, branch, next);
        step = attempts.end(*last);
      } else {
        if (!chosen.policy().adaptive) last.reset();  // a call that waits holds no response
        const auto& stop = Call::State::own_stop(call);
        const bool waited = co_await call.scheduler().sleep_until(step.until, stop);
        if (!waited) co_return attempts.cancel();
        step = attempts.begin();
      }
    }
    if (!last) co_return Error(Errc::Timeout, call.history().detail);
    if (!attempts.owes_body()) co_return *std::move(last);
    Outcome delivered =
        co_await Delivery::deliver_judged(attempts.request(), call, *std::move(last));
    co_return delivered;
  }

 private:
  [[nodiscard]] ChosenPolicy choose(const Request& request, const Call& call) {
    const auto now = call.scheduler().now();
    const auto& url = request.parsed_url();
    ChosenPolicy chosen;
    PolicyOrigin origin;
    if (const auto& own = request.options().policy) {
      chosen.own = own;
      origin.own = own.get();
    } else if (!url) {
      chosen.own = std::make_shared<const RetryPolicy>();  // will not be sent
      return chosen;
    } else {
      chosen.resolved = find_policy(request, *url, call);
      origin.identity = chosen.resolved->identity;
      origin.name = chosen.resolved->name;
    }
    chosen.budget = find_budget(chosen.policy(), origin, request, now);
    if (!request.options().retry) chosen.own = without_retries(chosen.policy());
    return chosen;
  }

  [[nodiscard]] std::shared_ptr<const ResolvedPolicy> find_policy(const Request& request,
                                                                  const Url& url,
                                                                  const Call& call) {
    // A poll that is sent again stays under the policy of the request that began the operation.
    const auto& attempts = call.history().attempts;
    if (PollUrl::is_poll(request, call) && attempts.back().policy) return attempts.back().policy;
    const auto current = policies_of(call).current(call.scheduler().now());
    if (current.reload) report(call, *current.reload);
    return current.policies.find_shared(request.method(), url, request.headers());
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
