// The retry middleware: sends a request, and resends it as long as RetryLoop decides to.
#include "idempotency_key.hpp"
#include "missing_stages.hpp"
#include "request_attempts.hpp"

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/flow/detail/run_queue.hpp"
#include "lib/core/guard/detail/shared_budget.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace httpretry {
namespace {

std::shared_ptr<const RetryPolicy> without_retries(const RetryPolicy& policy) {
  auto once = std::make_shared<RetryPolicy>(policy);
  once->max_attempts = 1;
  once->retry_on.pending.reset();
  return once;
}

// Returns whether the call has sent this request with the key.
bool was_sent_with(const SentKey& key, const Request& request) {
  const auto& sent = key.request;
  if (sent.method() != request.method()) return false;
  return key.redirected || (sent.url() == request.url() && sent.body().is_same_as(request.body()));
}

// Adds an idempotency key, such as "Idempotency-Key: 6fa1...", to a POST or PATCH if the policy
// asks for one. With the key, the server recognizes a repeated request and executes it only once.
// So a request that was sent before, and now is resent by a middleware above or redirected, gets
// the same key as before. The call stores the key for that. Does not replace a key that the user
// has set.
void add_idempotency_key(const RetryPolicy& policy, Request& request, const Call& call) {
  // The key with which this call has sent the same request before, or nullptr.
  auto* key = call.get<SentKey>();
  if (key != nullptr && !was_sent_with(*key, request)) key = nullptr;
  if (key != nullptr) {
    // A redirect may have changed the URL. From here on, the key belongs to this request.
    key->request = request;
    key->redirected = false;
  }
  const auto& name = policy.idempotency_key;  // the name of the header
  if (name.empty()) return;
  const auto users_key = request.headers().get(name);
  if (request.method() == "POST" || request.method() == "PATCH") {
    // Stores the user's key, or generates one for a request that was not sent before. `header` is
    // set only for the user's key, because only that one stays within its origin in a redirect.
    if (users_key || key == nullptr) {
      key = &call.set(SentKey{.request = request,
                              .value = users_key ? std::string(*users_key) : new_idempotency_key(),
                              .header = users_key ? name : std::string()});
    }
    if (!users_key) request.set_header(name, key->value);
  }
  // With a key, even a POST may be repeated, unless the user has said otherwise.
  if (request.headers().contains(name) && !request.options().repeatable) {
    request.edit_options().repeatable = true;
  }
}

// Returns the key of the budget that all requests with one policy share. A policy without a name is
// identified by its endpoint, and a policy that the request brought by its address.
std::string key_of_policy(const ChosenPolicy& chosen) {
  if (!chosen.resolved) {
    const auto object = reinterpret_cast<std::uintptr_t>(chosen.policy.get());
    return "policy at " + std::to_string(object);
  }
  const auto& resolved = *chosen.resolved;
  if (!resolved.name.empty()) return "policy " + std::string(resolved.name);
  if (!resolved.identity.empty()) return "policy of " + std::string(resolved.identity);
  return "the default policy";
}

// Returns a function that says whether the chain below `retry` has a stage.
HasStage stages_of(const Next& next) {
  return [&next](std::string_view stage) { return next.has(stage); };
}

// Raises `latest` to `number`. Returns true if it was lower: the caller is the first to see this
// change, and reports it.
bool sees_first(std::uint64_t number, std::atomic<std::uint64_t>& latest) {
  auto seen = latest.load(std::memory_order_relaxed);
  while (seen < number) {
    if (latest.compare_exchange_weak(seen, number, std::memory_order_relaxed)) return true;
  }
  return false;
}

// Finds the policy of a request and the account that pays for its retries. Each retry middleware
// has one, which serves its calls on all threads. It owns the budgets, and reports changes of the
// policy file and of the shared state to the observers.
class RetryPolicies {
 public:
  // `options` must outlive this.
  explicit RetryPolicies(const RetryOptions& options) : options_(options) {}

  // Returns the policy of a request, and the account: the retry budget, shared with other calls,
  // that pays for its retries. The policy is the request's own one, or that of the operation that
  // the request polls, or the one that the policy set has for its method, URL and headers. First
  // reports to the observers if the policy file or the shared state has changed.
  ChosenPolicy find(const Request& request, const Call& call, const Next& next) {
    if (const auto& shared = Call::State::shared_state_of(call)) report(call, *shared);
    ChosenPolicy chosen;
    std::shared_ptr<const PolicyReload> reload;  // set if the policy file has changed
    const auto& attempts = call.history().attempts;
    const auto& url = request.parsed_url();
    if (const auto& requests_policy = request.options().policy) {
      chosen.policy = requests_policy;
    } else if (!url) {  // the request is invalid and will not be sent, so any policy will do
      chosen.policy = std::make_shared<const RetryPolicy>();
      return chosen;
    } else if (PollUrl::is_poll(request, call) && attempts.back().policy) {
      // A poll that is resent keeps the policy of the request that began the operation.
      chosen.resolved = attempts.back().policy;
    } else {
      auto current = policies_of(call).current(call.scheduler().now());
      if (current.reload) report(call, *current.reload, current.policies, next);
      reload = std::move(current.reload);
      chosen.resolved = current.policies.find_shared(request.method(), *url, request.headers());
    }
    if (chosen.resolved) chosen.policy = chosen.resolved->policy;
    chosen.account = account_for(chosen, request, call, reload.get());
    return chosen;
  }

 private:
  // Returns the account that the request shares with all requests of the budget's scope. Returns
  // nullptr if the policy needs none, or if the request has no valid URL. `reload` has the budgets
  // that a new policy file has changed, and may be nullptr.
  std::shared_ptr<RetryAccount> account_for(const ChosenPolicy& chosen, const Request& request,
                                            const Call& call, const PolicyReload* reload) {
    const auto& budget = chosen.policy->budget;
    const bool has_budget = budget.kind != BudgetPolicy::Kind::None && !options_.budget;
    if (!has_budget && !chosen.policy->adaptive) return nullptr;
    const auto& url = request.parsed_url();
    std::string policy_key;  // `key` may refer to it
    // If no endpoint of the policy file matches the request, it shares the budget of its origin.
    auto key = url ? url->origin() : std::string_view();
    if (budget.scope == BudgetPolicy::Scope::Policy) {
      key = policy_key = key_of_policy(chosen);
    } else if (budget.scope == BudgetPolicy::Scope::Endpoint && chosen.resolved &&
               !chosen.resolved->identity.empty()) {
      key = chosen.resolved->identity;
    }
    if (key.empty()) return nullptr;
    const auto now = call.scheduler().now();
    std::span<const ChangedBudget> changes;
    if (reload != nullptr) changes = reload->changed_budgets;
    const auto& shared = Call::State::shared_state_of(call);
    if (!shared) return budgets_.at(key, budget, now, changes);
    const auto shared_key = "budget " + std::string(key);  // limits of other kinds are shared, too
    return changes.empty() ? shared->account(shared_key, budget, now)
                           : shared->account_after(changes, shared_key, budget, now);
  }

  [[nodiscard]] const PolicySource& policies_of(const Call& call) const {
    if (options_.policies) return *options_.policies;
    return call.policies() != nullptr ? *call.policies() : standard_;
  }

  // Reports that the policy file was read again. Logs a warning if a new policy needs a stage that
  // the chain lacks.
  void report(const Call& call, const PolicyReload& reload, const PolicySet& policies,
              const Next& next) {
    if (!sees_first(reload.number, reload_)) return;
    call.emit(&Observer::policies_reloaded, reload);
    const auto problem =
        reload.accepted ? missing_stages(policies, stages_of(next)) : std::string();
    if (problem.empty()) return;
    write_log(LogLevel::Warning, "httpretry: after " + reload.file + " was read again, " + problem);
  }

  void report(const Call& call, const SharedState& shared) {
    if (!sees_first(shared.changes(), shared_state_change_)) return;
    call.emit(&Observer::shared_state_changed, shared.last_change());
  }

  const RetryOptions& options_;
  const PolicySource standard_{PolicySet()};
  // The numbers of the latest changes that were reported.
  std::atomic<std::uint64_t> reload_ = 0;
  std::atomic<std::uint64_t> shared_state_change_ = 0;
  Budgets budgets_;
};

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
      if (problem.empty()) problem = missing_stages(*requests_policy, stages_of(next));
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
  // of the call. `attempts.begin` returns the next step: Send, Wait or Stop.
  // A waiting call keeps this coroutine frame. To keep the frame small, everything that a waiting
  // call does not need is in `handle`, `retry_to_sink` and RequestAttempts::send.
  Task<Outcome> retry(Request request, Call& call, Next next) {
    RequestAttempts attempts = begin(request, call, next);
    for (auto step = attempts.begin(); step != RetryStep::Kind::Stop; step = attempts.begin()) {
      if (step == RetryStep::Kind::Send) {
        const auto sending = attempts.send(next);
        Outcome outcome = co_await sending;
        if (attempts.has_ended()) co_return outcome;
        attempts.keep(std::move(outcome));  // if last_outcome() may need it after the wait
      }
      bool wait_completed = false;  // false if the call was canceled during the wait
      if (RunQueue::driven_of(call.scheduler()) != nullptr) {
        // On its own loop the call waits in this frame, without the frame of another coroutine.
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
