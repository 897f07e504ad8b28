// The retry middleware: sends a request, and again as long as RetryLoop says so.
#include "idempotency_key.hpp"
#include "request_attempts.hpp"
#include "retry_policies.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/flow/delivery.hpp"
#include "lib/flow/run_queue.hpp"
#include "lib/retry/policy_limits.hpp"

#include <memory>

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
    if (const auto& own = request.options().policy) {
      auto problem = policy::problem_of(*own);
      if (problem.empty()) problem = missing_stages(*own, next);
      if (!problem.empty()) {
        call.history().stop_reason = Reason::NotRetryable;
        return fail(Error(Errc::InvalidRequest, std::move(problem)));
      }
    }
    if (request.options().sink) return retry_to_sink(std::move(request), call, next);
    return retry(std::move(request), call, next);
  }

  [[nodiscard]] const PolicySource* policies() const {
    return options_.policies ? &*options_.policies : nullptr;
  }

 private:
  static Task<Outcome> fail(Error error) { co_return error; }

  // A call that waits holds this frame. So what it does not need then is in `handle`, in
  // `retry_to_sink` and in RequestAttempts::send.
  Task<Outcome> retry(Request request, Call& call, Next next) {
    RequestAttempts attempts = begin(request, call, next);
    for (auto step = attempts.begin(); step != RetryStep::Kind::Stop; step = attempts.begin()) {
      if (step == RetryStep::Kind::Send) {
        const auto sending = attempts.send(next);
        Outcome outcome = co_await sending;
        if (attempts.ended()) co_return outcome;
        attempts.keep(std::move(outcome));
      }
      bool waited = false;
      if (RunQueue::driven_of(call.scheduler()) != nullptr) {
        Sleep sleep(*RunQueue::current(), attempts.wait_until(), Call::State::own_stop(call));
        waited = co_await sleep;
      } else {
        const auto sleep =
            call.scheduler().sleep_until(attempts.wait_until(), Call::State::own_stop(call));
        waited = co_await sleep;
      }
      if (!waited) co_return attempts.cancel();
    }
    co_return attempts.last_outcome();
  }

  // The last attempt may have been a success whose body the sink has not got yet.
  Task<Outcome> retry_to_sink(Request request, Call& call, Next next) {
    Outcome outcome = co_await retry(request, call, next);
    const auto* last = call.history().last();
    const auto* delivery = Delivery::begun(call);
    if (!outcome || last->cls != Class::Success || delivery == nullptr || !delivery->held()) {
      co_return outcome;
    }
    if (const auto* poll = last_poll(call)) request = *poll;
    const auto delivering = Delivery::deliver_judged(std::move(request), call, std::move(outcome));
    Outcome delivered = co_await delivering;
    co_return delivered;
  }

  RequestAttempts begin(Request& request, Call& call, const Next& next) {
    auto found = policies_.find(request, call, next);
    add_idempotency_key(found.chosen.policy(), request, call);
    if (!request.options().retry) found.chosen.set_own(without_retries(found.chosen.policy()));
    return RequestAttempts(options_, std::move(found.chosen), std::move(found.account), request,
                           call);
  }

  const RetryOptions options_;
  RetryPolicies policies_{options_};
};

}  // namespace

const PolicySource* policies_of(const Middleware& retry) {
  const auto* const own = dynamic_cast<const Retry*>(&retry);
  return own != nullptr ? own->policies() : nullptr;
}

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
