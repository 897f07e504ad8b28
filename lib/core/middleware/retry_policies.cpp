#include "retry_policies.hpp"

#include "missing_stages.hpp"
#include "poll_url.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/log/log.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry {
namespace {

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

// Raises `latest` to `number`. Returns true if it was lower: the caller is the first to see this
// change, and reports it.
bool sees_first(std::uint64_t number, std::atomic<std::uint64_t>& latest) {
  auto seen = latest.load(std::memory_order_relaxed);
  while (seen < number) {
    if (latest.compare_exchange_weak(seen, number, std::memory_order_relaxed)) return true;
  }
  return false;
}

// Adapts the user's budget (RetryOptions::budget) to RetryAccount, for one call.
class OwnBudget final : public RetryAccount {
 public:
  // `rate` has the send rate that applies in addition to the budget, or is nullptr. `budget` and
  // `request` must outlive this.
  OwnBudget(RetryBudget& budget, const Request& request, std::shared_ptr<RetryAccount> rate)
      : budget_(budget), request_(request), rate_(std::move(rate)) {}

  Duration take_send(Time now) override { return rate_ ? rate_->take_send(now) : Duration::zero(); }
  void count_attempt(bool throttled, Time now) override {
    if (rate_) rate_->count_attempt(throttled, now);
  }
  void begin_call(Time /*now*/) override {}
  // Takes the cost of a retry from the user's budget, and settles with it if the call ends. A poll
  // costs nothing.
  RetryPermit end_attempt(BudgetClaim& /*claim*/, const Classified& classified, AfterAttempt next,
                          Time now) override {
    RetryPermit permit;
    permit.allowed = next != AfterAttempt::Retry || budget_.take(request_, classified, now);
    if (next == AfterAttempt::Stop || !permit.allowed) {
      settle(classified.cls == Class::Success, now);
    }
    return permit;
  }
  void cancel(BudgetClaim& /*claim*/, bool paid, Time now) override {
    if (settled_) return;
    if (paid) budget_.give_back(request_, now);
    settle(false, now);
  }
  bool take_hedge(BudgetClaim& /*claim*/, Time now) override {
    Classified like_a_retry;  // a hedge costs as much as a retry after a transient failure
    like_a_retry.cls = Class::Transient;
    return budget_.take(request_, like_a_retry, now);
  }
  void give_back_hedge(BudgetClaim& /*claim*/, Time now) override {
    budget_.give_back(request_, now);
  }
  void end_hedge(BudgetClaim& /*claim*/, Time /*now*/) override {}
  [[nodiscard]] std::optional<std::int64_t> left(Time /*now*/) const override {
    return std::nullopt;
  }

 private:
  void settle(bool success, Time now) {
    if (!std::exchange(settled_, true)) budget_.settle(request_, success, now);
  }

  RetryBudget& budget_;
  const Request& request_;
  const std::shared_ptr<RetryAccount> rate_;
  bool settled_ = false;  // also after `settle` has thrown
};

}  // namespace

RetryBudget::~RetryBudget() = default;

// Returns the policy of a request, and the account: the retry budget, shared with other calls,
// that pays for its retries. The policy is the request's own one, or that of the operation that
// the request polls, or the one that the policy set has for its method, URL and headers. First
// reports to the observers if the policy file or the shared state has changed.
ChosenPolicy RetryPolicies::find(const Request& request, const Call& call, const Next& next) {
  if (const auto& shared = Call::State::shared_state_of(call)) report(call, *shared);
  ChosenPolicy chosen;
  // The last reload of the policy file, or nullptr. Budgets that it changed continue with their new
  // numbers.
  std::shared_ptr<const PolicyReload> reload;
  const auto& attempts = call.history().attempts;
  const auto& url = request.parsed_url();
  if (const auto& requests_policy = request.options().policy) {
    chosen.policy = requests_policy;
  } else if (!url) {  // the request is invalid and will not be sent, so any policy will do
    chosen.policy = std::make_shared<const RetryPolicy>();
  } else if (PollUrl::is_poll(request, call) && attempts.back().policy) {
    // A poll that is resent keeps the policy of the request that began the operation. Each attempt
    // since then has recorded this policy.
    chosen.resolved = attempts.back().policy;
  } else {
    auto current = policies_of(call).current(call.scheduler().now());
    if (current.reload) report(call, *current.reload, current.policies, next);
    reload = std::move(current.reload);
    chosen.resolved = current.policies.find_shared(request.method(), *url, request.headers());
  }
  if (chosen.resolved) chosen.policy = chosen.resolved->policy;
  chosen.account = account_for(chosen, request, call, reload.get());
  if (options_.budget != nullptr) {
    // The user's own budget pays for the retries. Only the send rate of the account still applies.
    chosen.account =
        std::make_shared<OwnBudget>(*options_.budget, request, std::move(chosen.account));
  }
  return chosen;
}

// Returns the account that the request shares with all requests of the budget's scope. Returns
// nullptr if the policy needs none, or if the request has no valid URL. `reload` has the budgets
// that a new policy file has changed, and may be nullptr.
std::shared_ptr<RetryAccount> RetryPolicies::account_for(const ChosenPolicy& chosen,
                                                         const Request& request, const Call& call,
                                                         const PolicyReload* reload) {
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

const PolicySource& RetryPolicies::policies_of(const Call& call) const {
  if (options_.policies) return *options_.policies;
  return call.policies() != nullptr ? *call.policies() : standard_;
}

// Reports that the policy file was read again. Logs a warning if a new policy needs a stage that
// the chain lacks.
void RetryPolicies::report(const Call& call, const PolicyReload& reload, const PolicySet& policies,
                           const Next& next) {
  if (!sees_first(reload.number, reload_)) return;
  call.emit(&Observer::policies_reloaded, reload);
  if (!reload.accepted) return;
  const auto problem =
      missing_stages(policies, [&next](std::string_view stage) { return next.has(stage); });
  if (problem.empty()) return;
  write_log(LogLevel::Warning, "httpretry: after " + reload.file + " was reloaded, " + problem);
}

void RetryPolicies::report(const Call& call, const SharedState& shared) {
  if (!sees_first(shared.changes(), shared_state_change_)) return;
  call.emit(&Observer::shared_state_changed, shared.last_change());
}

}  // namespace httpretry
