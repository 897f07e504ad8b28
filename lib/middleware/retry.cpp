// The retry stage: send, look, decide, wait, again. What to make of an outcome, and what to do
// then, are pure functions of the policy layer; what is counted between attempts is in RetryRun.
#include "retry_run.hpp"

#include "lib/flow/call_state.hpp"

#include <httpretry/flow/inside_retry.hpp>

#include <atomic>

namespace httpretry {
namespace {

std::shared_ptr<const RetryPolicy> sent_once(const RetryPolicy& policy) {
  auto once = std::make_shared<RetryPolicy>(policy);
  once->max_attempts = 1;
  once->retry_on.pending.reset();
  return once;
}

PolicySource everywhere(RetryPolicy policy) {
  ResolvedPolicy resolved;
  resolved.policy = std::make_shared<const RetryPolicy>(std::move(policy));
  return PolicySet(std::move(resolved));
}

Task<Outcome> begin(const Next& next, Request request, Call& branch) {
  const detail::InsideRetry inside;
  return next(std::move(request), branch);
}

class Retry final : public Middleware {
 public:
  explicit Retry(RetryOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const override { return "retry"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    auto& clock = call.scheduler();
    const auto chosen = choose(request, call);
    give_key(*chosen.policy, request);
    RetryRun run(options_, chosen, budgets_, request, call);
    std::optional<Outcome> last;
    for (;;) {
      // Another call may take what was free when this one was told to wait: so it asks again.
      for (auto wait = run.wait_for_rate(); wait > Duration::zero(); wait = run.wait_for_rate()) {
        if (run.too_long(wait)) co_return run.held_back(wait, std::move(last));
        const bool waited = co_await clock.sleep_until(later(clock.now(), wait), call.stop());
        if (!waited) co_return run.canceled();
      }
      {  // the frames of the attempt are gone when the wait begins
        Call branch = Call::State::attempt(call, run.attempt_deadline());
        const auto attempt = begin(next, run.begin_attempt(), branch);
        const detail::AwaitInside inside(attempt);
        last = co_await inside;
      }
      if (!run.judge(*last)) {
        if (run.owes_body()) break;
        co_return *std::move(last);
      }
      if (!run.may_be_held_back()) last.reset();  // a call that waits holds nothing of the answer

      const bool waited = co_await clock.sleep_until(later(clock.now(), run.wait()), call.stop());
      if (!waited) co_return run.canceled();
    }
    Outcome handed_over = co_await Delivery::hand_over(request, call, *std::move(last));
    co_return handed_over;
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
      if (current.reload) tell(call, *current.reload);
      const auto& resolved = current.policies.find(request.method(), *url);
      chosen.policy = resolved.policy;
      chosen.identity = resolved.identity;
      chosen.name = resolved.name;
      chosen.policies = std::move(current.policies);
    } else {
      chosen.policy = std::make_shared<const RetryPolicy>();  // it will not be sent
    }
    if (!request.options().retry) chosen.policy = sent_once(*chosen.policy);
    return chosen;
  }

  [[nodiscard]] const PolicySource& policies_of(const Call& call) const {
    if (options_.policies) return *options_.policies;
    return call.policies() != nullptr ? *call.policies() : standard_;
  }

  // Each reload once, whichever call comes first.
  void tell(const Call& call, const PolicyReload& reload) {
    auto told = told_.load(std::memory_order_relaxed);
    while (told < reload.number) {
      if (!told_.compare_exchange_weak(told, reload.number, std::memory_order_relaxed)) continue;
      return call.emit(&Observer::policies_reloaded, reload);
    }
  }

  const RetryOptions options_;
  const PolicySource standard_{PolicySet()};
  std::atomic<std::uint64_t> told_ = 0;  // the number of the latest reload that observers heard of
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
  return retry(everywhere(std::move(policy)));
}

}  // namespace httpretry
