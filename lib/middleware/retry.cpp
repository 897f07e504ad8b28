// The middleware `retry`: finds the policy of a request, and does what the RetryLoop says.
#include "request_attempts.hpp"

#include "lib/flow/call_state.hpp"

#include <atomic>

namespace httpretry {
namespace {

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
    const auto chosen = choose(request, call);
    add_idempotency_key(*chosen.policy, request);
    RequestAttempts attempts(options_, chosen, budgets_, request, call);
    std::optional<Outcome> last;
    auto step = attempts.begin();
    while (step.kind != RetryStep::Kind::Stop) {
      if (step.kind == RetryStep::Kind::Send) {
        Call branch = Call::State::attempt(call, step.until);
        last = co_await next(attempts.prepare(step), branch);
        step = attempts.end(*last);
      } else {
        if (!attempts.keeps_outcome()) last.reset();  // a call that waits holds no response
        const bool waited = co_await call.scheduler().sleep_until(step.until, call.stop());
        if (!waited) co_return attempts.cancel();
        step = attempts.begin();
      }
    }
    if (!last) co_return attempts.never_sent();
    if (!attempts.owes_body()) co_return *std::move(last);
    Outcome delivered = co_await Delivery::deliver(request, call, *std::move(last));
    co_return delivered;
  }

 private:
  [[nodiscard]] ChosenPolicy choose(const Request& request, const Call& call) {
    ChosenPolicy chosen;
    const auto& url = request.parsed_url();
    if (request.options().policy) {
      chosen.policy = request.options().policy;
      chosen.own = chosen.policy.get();
    } else if (url) {
      auto current = policies_of(call).current(call.scheduler().now());
      if (current.reload) report(call, *current.reload);
      const auto& resolved = current.policies.find(request.method(), *url);
      chosen.policy = resolved.policy;
      chosen.identity = resolved.identity;
      chosen.name = resolved.name;
      chosen.policies = std::move(current.policies);
    } else {
      chosen.policy = std::make_shared<const RetryPolicy>();  // the transport will refuse it
    }
    if (!request.options().retry) chosen.policy = without_retries(*chosen.policy);
    return chosen;
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

MiddlewarePtr retry(RetryPolicy policy) {
  check(policy);
  return retry(for_all_requests(std::move(policy)));
}

}  // namespace httpretry
