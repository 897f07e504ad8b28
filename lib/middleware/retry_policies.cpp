#include "retry_policies.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/flow/log.hpp"

#include <span>
#include <utility>

namespace httpretry {
namespace {

// Returns the key of a budget that all requests with one policy share. A policy without a name is
// known by the endpoint that it belongs to, and one that the request has brought by its object.
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

HasStage stages_of(const Next& next) {
  return [&next](std::string_view stage) { return next.has(stage); };
}

// Returns whether the calling thread is the first to see a change. Each change is reported once.
bool sees_first(std::uint64_t number, std::atomic<std::uint64_t>& latest) {
  auto seen = latest.load(std::memory_order_relaxed);
  while (seen < number) {
    if (latest.compare_exchange_weak(seen, number, std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace

std::string missing_stages(const RetryPolicy& policy, const Next& next) {
  return missing_stages(policy, stages_of(next));
}

FoundPolicy RetryPolicies::find(const Request& request, const Call& call, const Next& next) {
  if (const auto& shared = Call::State::shared_state_of(call)) report(call, *shared);
  FoundPolicy found;
  std::shared_ptr<const PolicyReload> reload;
  const auto& attempts = call.history().attempts;
  const auto& url = request.parsed_url();
  if (const auto& own = request.options().policy) {
    found.chosen.set_own(own);
  } else if (!url) {  // the request will not be sent
    found.chosen.set_own(std::make_shared<const RetryPolicy>());
    return found;
  } else if (PollUrl::is_poll(request, call) && attempts.back().policy) {
    // A poll that is sent again stays under the policy of the request that began the operation.
    found.chosen.resolved = attempts.back().policy;
  } else {
    auto current = policies_of(call).current(call.scheduler().now());
    if (current.reload) report(call, *current.reload, current.policies, next);
    reload = std::move(current.reload);
    found.chosen.resolved = current.policies.find_shared(request.method(), *url, request.headers());
  }
  found.account = find_account(found.chosen, request, call, reload.get());
  return found;
}

std::shared_ptr<RetryAccount> RetryPolicies::find_account(const ChosenPolicy& chosen,
                                                          const Request& request, const Call& call,
                                                          const PolicyReload* reload) {
  const auto& policy = chosen.policy();
  const auto& budget = policy.budget;
  const bool has_budget = budget.kind != BudgetPolicy::Kind::None && !options_.budget;
  if (!has_budget && !policy.adaptive) return nullptr;
  const std::string_view endpoint =
      chosen.resolved ? chosen.resolved->identity : std::string_view();
  if (budget.scope == BudgetPolicy::Scope::Policy) {
    return account(key_of_policy(chosen), budget, call, reload);
  }
  // A request that no endpoint of the policy file matches shares with its host.
  if (budget.scope == BudgetPolicy::Scope::Endpoint && !endpoint.empty()) {
    return account(endpoint, budget, call, reload);
  }
  const auto& url = request.parsed_url();
  return url ? account(url->origin(), budget, call, reload) : nullptr;
}

std::shared_ptr<RetryAccount> RetryPolicies::account(std::string_view key,
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

const PolicySource& RetryPolicies::policies_of(const Call& call) const {
  if (options_.policies) return *options_.policies;
  return call.policies() != nullptr ? *call.policies() : standard_;
}

void RetryPolicies::report(const Call& call, const PolicyReload& reload, const PolicySet& policies,
                           const Next& next) {
  if (!sees_first(reload.number, reload_)) return;
  call.emit(&Observer::policies_reloaded, reload);
  const auto problem = reload.accepted ? missing_stages(policies, stages_of(next)) : std::string();
  if (!problem.empty()) {
    write_log(LogLevel::Warning, "httpretry: after " + reload.file + " was read again, " + problem);
  }
}

void RetryPolicies::report(const Call& call, const SharedState& shared) {
  if (!sees_first(shared.changes(), shared_state_change_)) return;
  call.emit(&Observer::shared_state_changed, shared.last_change());
}

}  // namespace httpretry
