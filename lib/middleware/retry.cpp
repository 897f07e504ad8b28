// The middleware `retry`: finds the policy of a request, and does what the RetryLoop says.
#include "missing_stages.hpp"
#include "request_attempts.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/flow/log.hpp"
#include "lib/flow/run_queue.hpp"
#include "lib/flow/shared_budget.hpp"
#include "lib/retry/policy_limits.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>

namespace httpretry {
namespace {

// The key of a budget that all requests with one policy share. A policy without a name is known by
// the endpoint that it belongs to; one that the request has brought, by its object.
std::string key_of_policy(const ChosenPolicy& chosen) {
  if (!chosen.resolved) {
    const auto object = reinterpret_cast<std::uintptr_t>(chosen.own->get());
    return "policy at " + std::to_string(object);
  }
  const auto& resolved = *chosen.resolved;
  if (!resolved.name.empty()) return "policy " + std::string(resolved.name);
  if (!resolved.identity.empty()) return "policy of " + std::string(resolved.identity);
  return "the default policy";
}

// Whether the call has sent this request with the key.
bool is_for(const SentKey& key, const Request& request) {
  const auto& sent = key.request;
  if (sent.method() != request.method()) return false;
  return key.redirected || (sent.url() == request.url() && sent.body().is_same_as(request.body()));
}

// Gives a POST or PATCH the idempotency key that the policy asks for, if it has none. A request
// with a key is repeatable.
void add_idempotency_key(const RetryPolicy& policy, Request& request, const Call& call) {
  auto* key = Call::State::key(call);
  if (key != nullptr && !is_for(*key, request)) key = nullptr;
  if (key != nullptr) {
    key->request = request;
    key->redirected = false;
  }
  const auto& name = policy.idempotency_key;
  if (name.empty()) return;
  const auto own = request.headers().get(name);
  if (request.method() == "POST" || request.method() == "PATCH") {
    if (own || key == nullptr) {
      auto sent =
          std::make_unique<SentKey>(request, own ? std::string(*own) : new_idempotency_key());
      if (own) sent->header = name;
      key = sent.get();
      Call::State::of(call).rare().key = std::move(sent);
    }
    if (!own) request.set_header(name, key->value);
  }
  if (request.headers().contains(name) && !request.options().repeatable) {
    request.edit_options().repeatable = true;
  }
}

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
      if (problem.empty()) problem = missing_stages(*own, stages_of(next));
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
  static HasStage stages_of(const Next& next) {
    return [&next](std::string_view stage) { return next.has(stage); };
  }
  static Task<Outcome> fail(Error error) { co_return error; }

  // A call that waits holds this frame. So what it does not need then is in `handle` and in
  // `retry_to_sink`.
  Task<Outcome> retry(Request request, Call& call, Next next) {
    RequestAttempts attempts = begin(request, call, next);
    std::unique_ptr<Outcome> last;  // kept where the call may yet end with it
    auto step = attempts.begin();
    bool waited = false;
    while (step != RetryStep::Kind::Stop) {
      if (step == RetryStep::Kind::Send) {
        const auto sending = attempts.send(next);
        Outcome outcome = co_await sending;
        if (attempts.was_held_back(outcome)) {
          co_return attempts.refuse(std::move(outcome), last.get());
        }
        step = attempts.end(outcome);
        if (step == RetryStep::Kind::Stop) co_return outcome;
        last.reset();
        if (attempts.chosen().may_end_with_last()) {
          last = std::make_unique<Outcome>(std::move(outcome));
        }
      } else {
        if (RunQueue::driven_of(call.scheduler()) != nullptr) {
          Sleep sleep(*RunQueue::current(), attempts.wait_until(), Call::State::own_stop(call));
          waited = co_await sleep;
        } else {
          const auto sleep =
              call.scheduler().sleep_until(attempts.wait_until(), Call::State::own_stop(call));
          waited = co_await sleep;
        }
        if (!waited) co_return attempts.cancel();
        step = attempts.begin();
      }
    }
    if (!last) co_return Error(Errc::Timeout, call.history().detail);
    co_return std::move(*last);
  }

  // The last attempt may have been a success whose body the sink has not got yet.
  Task<Outcome> retry_to_sink(Request request, Call& call, Next next) {
    Outcome outcome = co_await retry(request, call, next);
    const auto* last = call.history().last();
    const auto* delivery = Delivery::begun(call);
    if (!outcome || last->cls != Class::Success || delivery == nullptr || !delivery->held()) {
      co_return outcome;
    }
    if (const auto* poll = Call::State::poll(call)) request = *poll;
    const auto delivering = Delivery::deliver_judged(std::move(request), call, std::move(outcome));
    Outcome delivered = co_await delivering;
    co_return delivered;
  }

  RequestAttempts begin(Request& request, Call& call, const Next& next) {
    std::shared_ptr<const PolicyReload> reload;
    auto chosen = choose(request, call, next, reload);
    add_idempotency_key(chosen.policy(), request, call);
    auto budget = find_budget(chosen, request, call, reload.get());
    if (!request.options().retry) chosen.set_own(without_retries(chosen.policy()));
    return RequestAttempts(options_, std::move(chosen), std::move(budget), request, call);
  }

  // `reload`: the latest one of the file that the policy is from.
  [[nodiscard]] ChosenPolicy choose(const Request& request, const Call& call, const Next& next,
                                    std::shared_ptr<const PolicyReload>& reload) {
    if (const auto& shared = Call::State::shared_state_of(call)) report(call, *shared);
    const auto& url = request.parsed_url();
    ChosenPolicy chosen;
    if (const auto& own = request.options().policy) {
      chosen.set_own(own);
    } else if (!url) {
      chosen.set_own(std::make_shared<const RetryPolicy>());  // will not be sent
    } else {
      chosen.resolved = find_policy(request, *url, call, next, reload);
    }
    return chosen;
  }

  [[nodiscard]] std::shared_ptr<const ResolvedPolicy> find_policy(
      const Request& request, const Url& url, const Call& call, const Next& next,
      std::shared_ptr<const PolicyReload>& reload) {
    // A poll that is sent again stays under the policy of the request that began the operation.
    const auto& attempts = call.history().attempts;
    if (PollUrl::is_poll(request, call) && attempts.back().policy) return attempts.back().policy;
    auto current = policies_of(call).current(call.scheduler().now());
    if (current.reload) report(call, *current.reload, current.policies, next);
    reload = std::move(current.reload);
    return current.policies.find_shared(request.method(), url, request.headers());
  }

  [[nodiscard]] std::shared_ptr<RetryAccount> find_budget(const ChosenPolicy& chosen,
                                                          const Request& request, const Call& call,
                                                          const PolicyReload* reload) {
    const auto& policy = chosen.policy();
    const auto& budget = policy.budget;
    const bool has_budget = budget.kind != BudgetPolicy::Kind::None && !options_.budget;
    if (!has_budget && !policy.adaptive) return nullptr;
    const auto& url = request.parsed_url();
    if (!url && !request.options().policy) return nullptr;  // will not be sent
    const std::string_view endpoint =
        chosen.resolved ? chosen.resolved->identity : std::string_view();
    if (budget.scope == BudgetPolicy::Scope::Policy) {
      return account(key_of_policy(chosen), budget, call, reload);
    }
    // A request that no endpoint of the policy file matches shares with its host.
    if (budget.scope == BudgetPolicy::Scope::Endpoint && !endpoint.empty()) {
      return account(endpoint, budget, call, reload);
    }
    return url ? account(url->origin(), budget, call, reload) : nullptr;
  }

  [[nodiscard]] std::shared_ptr<RetryAccount> account(std::string_view key,
                                                      const BudgetPolicy& budget, const Call& call,
                                                      const PolicyReload* reload) {
    const auto now = call.scheduler().now();
    std::span<const ChangedBudget> changes;
    if (reload != nullptr) changes = reload->changed_budgets;
    const auto& shared = Call::State::shared_state_of(call);
    if (!shared) return budgets_.at(key, budget, now, changes);
    const auto whole_key = "budget " + std::string(key);
    return changes.empty() ? shared->account(whole_key, budget, now)
                           : shared->account_after(changes, whole_key, budget, now);
  }

  [[nodiscard]] const PolicySource& policies_of(const Call& call) const {
    if (options_.policies) return *options_.policies;
    return call.policies() != nullptr ? *call.policies() : standard_;
  }

  // The observers are told of each change once, whichever call sees it first.
  static bool sees_first(std::uint64_t number, std::atomic<std::uint64_t>& latest) {
    auto seen = latest.load(std::memory_order_relaxed);
    while (seen < number) {
      if (latest.compare_exchange_weak(seen, number, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void report(const Call& call, const PolicyReload& reload, const PolicySet& policies,
              const Next& next) {
    if (!sees_first(reload.number, reload_)) return;
    call.emit(&Observer::policies_reloaded, reload);
    const auto problem =
        reload.accepted ? missing_stages(policies, stages_of(next)) : std::string();
    if (!problem.empty()) {
      write_log(LogLevel::Warning,
                "httpretry: after " + reload.file + " was read again, " + problem);
    }
  }
  void report(const Call& call, const SharedState& shared) {
    if (!sees_first(shared.changes(), shared_state_change_)) return;
    call.emit(&Observer::shared_state_changed, shared.last_change());
  }

  const RetryOptions options_;
  const PolicySource standard_{PolicySet()};
  // The numbers of the latest that the observers were told.
  std::atomic<std::uint64_t> reload_ = 0;
  std::atomic<std::uint64_t> shared_state_change_ = 0;
  Budgets budgets_;
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
