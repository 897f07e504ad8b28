// The retry stage: send, look, decide, wait, again. What to make of an outcome, and what to do
// then, are pure functions of the policy layer; what is counted between attempts is in RetryRun.
#include "retry_run.hpp"

#include "lib/flow/delivery.hpp"

#include <httpretry/inside_retry.hpp>

namespace httpretry {
namespace {

std::shared_ptr<const RetryPolicy> sent_once(const RetryPolicy& policy) {
  auto once = std::make_shared<RetryPolicy>(policy);
  once->max_attempts = 1;
  once->retry_on.pending.reset();
  return once;
}

PolicySet everywhere(RetryPolicy policy) {
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
    const auto chosen = choose(request);
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
      Call branch = call.with(run.attempt_deadline(), call.stop());
      const auto attempt = begin(next, run.begin_attempt(), branch);
      const detail::AwaitInside inside(attempt);
      last = co_await inside;
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
  [[nodiscard]] ChosenPolicy choose(const Request& request) const {
    ChosenPolicy chosen;
    const auto& url = request.parsed_url();
    if (request.options().policy) {
      chosen.policy = request.options().policy;
    } else if (url) {
      const auto& resolved = options_.policies.find(request.method(), *url);
      chosen = {resolved.policy, resolved.endpoint, resolved.name, nullptr};
    } else {
      chosen.policy = std::make_shared<const RetryPolicy>();  // it will not be sent
    }
    chosen.identity = chosen.policy.get();
    if (!request.options().retry) chosen.policy = sent_once(*chosen.policy);
    return chosen;
  }

  RetryOptions options_;
  Budgets budgets_;
};

}  // namespace

RetryBudget::~RetryBudget() = default;

RetryOptions::RetryOptions() = default;
RetryOptions::~RetryOptions() = default;
RetryOptions::RetryOptions(const RetryOptions&) = default;
RetryOptions::RetryOptions(RetryOptions&&) noexcept = default;
RetryOptions& RetryOptions::operator=(const RetryOptions&) = default;
RetryOptions& RetryOptions::operator=(RetryOptions&&) noexcept = default;

MiddlewarePtr retry(RetryOptions options) { return std::make_shared<Retry>(std::move(options)); }

MiddlewarePtr retry(PolicySet policies) {
  RetryOptions options;
  options.policies = std::move(policies);
  return retry(std::move(options));
}

MiddlewarePtr retry(RetryPolicy policy) { return retry(everywhere(std::move(policy))); }

}  // namespace httpretry
