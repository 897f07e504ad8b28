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
  if (retried(503)) return 503;
  for (int status = 100; status <= 599; ++status) {
    if (retried(status)) return status;
  }
  return 503;  // the policy retries no status
}

// Applies a budget to the bounds: limits `w_l` to one send and the retries per call that a spent
// budget still allows, and sets the retries that a full budget allows (`burst`) or that are always
// allowed. The ratios, rates and gRPC's tokens of a BudgetPolicy are in thousandths.
void add_budget(PolicyBounds& bounds, const BudgetPolicy& budget) {
  using Kind = BudgetPolicy::Kind;
  const auto quotient = [](std::int64_t dividend, std::int64_t divisor) {
    return static_cast<double>(dividend) / static_cast<double>(divisor);
  };
  std::optional<double> retries_per_call;
  switch (budget.kind) {
    case Kind::None: return;
    case Kind::Tokens:
      if (budget.retry_cost <= 0) return;
      retries_per_call = quotient(budget.refill, budget.retry_cost);
      bounds.burst = quotient(budget.capacity, budget.retry_cost);
      break;
    case Kind::Ratio:
      retries_per_call = quotient(budget.ratio, 1000);
      bounds.burst = quotient(budget.min_per_second, 1000) *
                     std::chrono::duration<double>(budget.window).count();
      break;
    case Kind::Grpc:
      retries_per_call = quotient(budget.refill, 1000);
      bounds.burst = quotient(budget.capacity, 2 * 1000);  // gRPC stops at half of the tokens
      break;
    case Kind::Concurrent:
      // At most this share of the calls in flight are retries. The same share of the sends are
      // retries if all attempts take equally long. Waits lower it.
      bounds.always = budget.min;
      if (budget.ratio >= 1000) return;
      retries_per_call = quotient(budget.ratio, 1000 - budget.ratio);
      break;
  }
  const double sends_per_call = 1 + *retries_per_call;
  if (!bounds.w_l || *bounds.w_l > sends_per_call) bounds.w_l = sends_per_call;
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

// Returns the bounds for the policy that a set has for the request. Counts the sends of a call that
// fails until the end twice, as the policy is and without its budget and guards, and then applies
// the budget. Returns empty bounds if the URL of the request is not valid.
PolicyBounds bounds_of(const PolicySet& policies, const Request& request) {
  PolicyBounds bounds;
  const auto& url = request.parsed_url();
  if (!url) return bounds;
  auto resolved = policies.find(request.method(), *url, request.headers());
  const auto policy = resolved.policy;
  const auto status = retried_status(*policy);
  bounds.sends_at_first = sends_of_one_call(policies, request, status);  // with a full budget
  auto unlimited = *policy;
  unlimited.budget.kind = BudgetPolicy::Kind::None;
  unlimited.guards = GuardPolicy();  // guards limit the sends to a host, not those of one call
  resolved.policy = std::make_shared<const RetryPolicy>(std::move(unlimited));
  bounds.w_l = sends_of_one_call(PolicySet(std::move(resolved)), request, status);
  add_budget(bounds, policy->budget);
  bounds.stable_below = bounds.w_l ? 1 / *bounds.w_l : 0;
  return bounds;
}

}  // namespace httpretry
