// The retry middleware: sends a request, and resends it as long as RetryLoop decides to.
#include "idempotency_key.hpp"
#include "missing_stages.hpp"
#include "request_attempts.hpp"
#include "retry_policies.hpp"

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/flow/detail/run_queue.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <memory>
#include <string_view>

namespace httpretry {
namespace {

std::shared_ptr<const RetryPolicy> without_retries(const RetryPolicy& policy) {
  auto once = std::make_shared<RetryPolicy>(policy);
  once->max_attempts = 1;
  once->retry_on.pending.reset();
  return once;
}

class Retry final : public Middleware {
 public:
  explicit Retry(RetryOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const override { return kName; }

  // Returns the middleware as a Retry, or nullptr if it is a user's that has the same name. Unlike
  // dynamic_cast, it needs no RTTI of the user's class.
  static const Retry* cast(const Middleware& middleware) {
    const bool is_retry = middleware.name().data() == kName;
    return is_retry ? static_cast<const Retry*>(&middleware) : nullptr;
  }

  // Checks the request's own policy, if it has one. Then makes the attempts.
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    if (const auto& requests_policy = request.options().policy) {
      auto problem = policy::problem_of(*requests_policy);
      if (problem.empty()) {
        problem = missing_stages(*requests_policy,
                                 [&next](std::string_view stage) { return next.has(stage); });
      }
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

  // Makes attempts, with the waits between them, until RetryLoop ends the call. Returns the outcome
  // of the call. A step is Send, Wait or Stop.
  // A waiting call keeps this coroutine frame. To keep the frame small, everything that a waiting
  // call does not need is in `handle`, `retry_to_sink` and RequestAttempts::send. Each task is made
  // in a statement before its co_await, so that the temporaries of that statement are not kept.
  Task<Outcome> retry(Request request, Call& call, Next next) {
    RequestAttempts attempts = begin(request, call, next);
    for (auto step = attempts.next_step(); step != RetryStep::Kind::Stop;
         step = attempts.next_step()) {
      if (step == RetryStep::Kind::Send) {
        const auto sending = attempts.send(next);
        Outcome outcome = co_await sending;
        if (attempts.has_ended()) co_return outcome;
        attempts.keep(std::move(outcome));  // if last_outcome() may need it after the wait
      }
      bool wait_completed = false;  // false if the call was canceled during the wait
      if (RunQueue::driven_of(call.scheduler()) != nullptr) {
        // On its own loop the call waits in this frame, without the frame of another coroutine.
        // driven_of has checked that current() is this loop. A variable would enlarge the frame.
        Sleep sleep(*RunQueue::current(), attempts.wait_until(), Call::State::own_stop(call));
        wait_completed = co_await sleep;
      } else {
        const auto sleep =
            call.scheduler().sleep_until(attempts.wait_until(), Call::State::own_stop(call));
        wait_completed = co_await sleep;
      }
      if (!wait_completed) co_return attempts.cancel();
    }
    co_return attempts.last_outcome();
  }

  // Makes the attempts of a request whose response body goes to a sink. Delivers the body of a
  // successful last attempt if the sink has not received it yet.
  Task<Outcome> retry_to_sink(Request request, Call& call, Next next) {
    Outcome outcome = co_await retry(request, call, next);
    const auto* last = call.history().last();
    const auto* delivery = Delivery::if_open(call);
    if (!outcome || last->cls != Class::Success || delivery == nullptr || !delivery->holds_back()) {
      co_return outcome;
    }
    if (const auto* poll = last_poll(call)) request = *poll;
    const auto delivering = Delivery::deliver_judged(std::move(request), call, std::move(outcome));
    Outcome delivered = co_await delivering;
    co_return delivered;
  }

  // Prepares the attempts. Adds an idempotency key to `request`, which must outlive the result.
  RequestAttempts begin(Request& request, Call& call, const Next& next) {
    auto chosen = policies_.find(request, call, next);
    add_idempotency_key(*chosen.policy, request, call);
    if (!request.options().retry) chosen.policy = without_retries(*chosen.policy);
    return RequestAttempts(options_, std::move(chosen), request, call);
  }

  static constexpr char kName[] = "retry";  // no other object has this address

  const RetryOptions options_;
  RetryPolicies policies_{options_};
};

}  // namespace

const PolicySource* policies_of(const Middleware& retry) {
  const auto* const own = Retry::cast(retry);
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

MiddlewarePtr retry(RetryPolicy policy) { return retry(PolicySource(std::move(policy))); }

}  // namespace httpretry
