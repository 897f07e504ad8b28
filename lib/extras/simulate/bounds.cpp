// The bounds of a policy, without a model of a server.
#include "run.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace httpretry {
namespace {

constexpr std::uint64_t kMostSends = 1000;

// Returns a status that the policy retries: 503 if possible, otherwise the lowest one.
int retried_status(const RetryPolicy& policy) {
  const auto retried = [&](int status) {
    return policy.retry_on.statuses.contains(status) ||
           policy.retry_on.throttle_statuses.contains(status);
  };
  for (int status = 100; !retried(503) && status <= 599; ++status) {
    if (retried(status)) return status;
  }
  return 503;
}

// Adds the retries per call that a spent budget still allows, and those that a full one allows.
void add_budget(PolicyBounds& bounds, const BudgetPolicy& budget) {
  using Kind = BudgetPolicy::Kind;
  const auto share = [](std::int64_t part, std::int64_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  };
  std::optional<double> more;
  switch (budget.kind) {
    case Kind::None: return;
    case Kind::Tokens:
      if (budget.retry_cost <= 0) return;
      more = share(budget.refill, budget.retry_cost);
      bounds.burst = share(budget.capacity, budget.retry_cost);
      break;
    case Kind::Ratio:
      more = share(budget.ratio, 1000);
      bounds.burst =
          share(budget.min_per_second, 1000) * std::chrono::duration<double>(budget.window).count();
      break;
    case Kind::Grpc:
      more = share(budget.refill, 1000);
      bounds.burst = share(budget.capacity, 2000);
      break;
    case Kind::Concurrent:
      // At most this share of the calls in flight are retries. The same share of the sends are
      // retries if all attempts take equally long. Waits lower it.
      bounds.always = budget.min;
      if (budget.ratio >= 1000) return;
      more = share(budget.ratio, 1000 - budget.ratio);
      break;
  }
  bounds.w_l = std::min(bounds.w_l.value_or(1 + *more), 1 + *more);
}

// Returns the sends of one call if every attempt fails at once. Empty if they exceed kMostSends.
std::optional<double> sends_of_one_call(const PolicySet& policies, const Request& request,
                                        int status) {
  SimulationOptions options;
  options.request = request;
  options.clients = 1;
  options.load.kind = Load::Kind::Once;
  options.most_sends = kMostSends;
  options.model.network = Distribution();
  options.model.probability = 1;
  options.model.status = status;
  options.mean_waits = true;
  const auto run = simulation::run(options, SimulatedPolicy("", policies));
  return run ? std::optional(static_cast<double>(run->sends)) : std::nullopt;
}

}  // namespace

PolicyBounds bounds_of(const PolicySet& policies, const Request& request) {
  PolicyBounds bounds;
  const auto& url = request.parsed_url();
  if (!url) return bounds;
  auto found = policies.find(request.method(), *url, request.headers());
  const auto policy = found.policy;
  const auto status = retried_status(*policy);
  bounds.sends_at_first = sends_of_one_call(policies, request, status);
  auto unlimited = *policy;
  unlimited.budget.kind = BudgetPolicy::Kind::None;
  unlimited.guards = GuardPolicy();  // guards limit the sends to a host, not those of one call
  found.policy = std::make_shared<const RetryPolicy>(std::move(unlimited));
  bounds.w_l = sends_of_one_call(PolicySet(std::move(found)), request, status);
  add_budget(bounds, policy->budget);
  bounds.stable_below = bounds.w_l ? 1 / *bounds.w_l : 0;
  return bounds;
}

}  // namespace httpretry
