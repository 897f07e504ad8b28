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

// Lowers `bounds.w_l`, the most sends per call in the long run, to what a retry budget allows. On
// entry, `w_l` is the number of sends if every attempt fails and there is no budget, and empty if
// the policy does not limit it. Once the budget is spent, a call has its first send, and on average
// at most as many retries as it adds to the budget. `bounds.burst` becomes the number of retries
// that a full budget allows before it is spent. BudgetPolicy has tokens, ratios and rates in
// thousandths.
void add_budget(PolicyBounds& bounds, const BudgetPolicy& budget) {
  using Kind = BudgetPolicy::Kind;
  constexpr std::int64_t kOne = 1000;  // one token, or a ratio of 1
  const auto quotient = [](std::int64_t dividend, std::int64_t divisor) {
    return static_cast<double>(dividend) / static_cast<double>(divisor);
  };
  double retries_per_call = 0;  // after the budget is spent
  switch (budget.kind) {
    case Kind::None: return;
    case Kind::Tokens:
      if (budget.retry_cost <= 0) return;  // retries are free, so the budget limits nothing
      // A retry costs tokens. Only a call that succeeds gives back `refill`, but `w_l` counts it
      // for each call, because some calls may succeed.
      retries_per_call = quotient(budget.refill, budget.retry_cost);
      bounds.burst = quotient(budget.capacity, budget.retry_cost);
      break;
    case Kind::Ratio:
      // Each call allows `ratio` retries. In addition, `min_per_second` are always allowed. They do
      // not grow with the number of calls, so `w_l` does not count them.
      retries_per_call = quotient(budget.ratio, kOne);
      bounds.always = quotient(budget.min_per_second, kOne);
      bounds.burst = *bounds.always * std::chrono::duration<double>(budget.window).count();
      break;
    case Kind::Grpc:
      // A failure costs one token, and a success gives back `refill`, which again counts for
      // each call.
      retries_per_call = quotient(budget.refill, kOne);
      bounds.burst = quotient(budget.capacity, 2 * kOne);  // gRPC stops at half of the tokens
      break;
    case Kind::Concurrent:
      bounds.always = budget.min;        // that many retries may always be in flight
      if (budget.ratio >= kOne) return;  // all calls in flight may be retries: no limit
      // At most the share `ratio` of the calls in flight may be retries. If all attempts take
      // equally long, retries are the same share of the sends. Waits before retries lower it.
      retries_per_call = quotient(budget.ratio, kOne - budget.ratio);
      break;
  }
  const double sends_per_call = 1 + retries_per_call;
  bounds.w_l = std::min(bounds.w_l.value_or(sends_per_call), sends_per_call);
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

// Returns bounds on the load that the request's policy can cause, whatever the server does. To get
// them, simulates one call whose every attempt fails, twice: with its budget and guards, which
// shows what a full budget allows, and without them. The result of the second is then limited to
// what a spent budget allows. Returns empty bounds if the request's URL is not valid.
PolicyBounds bounds_of(const PolicySet& policies, const Request& request) {
  PolicyBounds bounds;
  const auto& url = request.parsed_url();
  if (!url) return bounds;
  // The policy, with the entry of the set that it comes from.
  auto resolved = policies.find(request.method(), *url, request.headers());
  auto policy = *resolved.policy;
  const auto status = retried_status(policy);  // a status that is retried; all attempts get it
  auto& budget = policy.budget;
  // A throttle, a timeout and any other failure may cost different numbers of tokens. The server
  // decides which of them occur, so all get the lowest cost.
  budget.retry_cost = std::min({budget.retry_cost, budget.throttle_cost, budget.timeout_cost});
  budget.throttle_cost = budget.timeout_cost = budget.retry_cost;
  const auto sends = [&] {
    resolved.policy = std::make_shared<const RetryPolicy>(policy);
    return sends_of_one_call(PolicySet(resolved), request, status);
  };
  bounds.sends_at_first = sends();
  const auto limits = std::exchange(budget, BudgetPolicy());  // its kind is None
  policy.guards = GuardPolicy();  // guards limit the sends to a host, not those of one call
  bounds.w_l = sends();
  add_budget(bounds, limits);
  // A server keeps up if its capacity is enough for `w_l` sends of each call. Without a limit on
  // the sends, no load is safe.
  bounds.stable_below = bounds.w_l ? 1 / *bounds.w_l : 0;
  return bounds;
}

}  // namespace httpretry
