// The middleware `hedge`: finds what is shared with other calls, and lets the sends of an attempt
// race.
#include "race.hpp"

#include "lib/flow/call_state.hpp"

#include <httpretry/guard/hedge.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <string>

namespace httpretry {
namespace {

using guard::HedgeScope;
using guard::HedgeScopes;

// Requests with a policy of their own share with those that have the same object.
std::string key_of_policy(const CurrentAttempt& attempt) {
  const auto& resolved = attempt.resolved();
  if (resolved == nullptr) {
    const auto own = attempt.shared_policy();
    return "policy at " + std::to_string(reinterpret_cast<std::uintptr_t>(own.get()));
  }
  if (!resolved->name.empty()) return "policy " + resolved->name;
  return resolved->identity.empty() ? "the default policy" : "policy of " + resolved->identity;
}

std::string key_of(GuardScope scope, const CurrentAttempt& attempt, const Request& request) {
  if (scope == GuardScope::Policy) return key_of_policy(attempt);
  const auto& resolved = attempt.resolved();
  const auto& url = request.parsed_url();
  const auto origin = url ? url->origin() : std::string();
  // A request that no endpoint of the policy file matches shares with its host.
  if (scope == GuardScope::Endpoint && resolved != nullptr && !resolved->identity.empty()) {
    return resolved->identity + " " + origin;
  }
  return origin;
}

class Hedging final : public Middleware {
 public:
  [[nodiscard]] std::string_view name() const override { return "hedge"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    auto* const attempt = Call::State::current_attempt(call);
    if (attempt == nullptr || !attempt->policy().hedge) return next(std::move(request), call);
    return race(*attempt, std::move(request), call, next);
  }

 private:
  Task<Outcome> race(CurrentAttempt& attempt, Request request, Call& call, Next next) {
    const auto key = key_of(attempt.policy().hedge->scope, attempt, request);
    const auto scope = scopes_.at(key, call.scheduler().now());
    guard::Race sends(attempt, *scope, request, call, next);
    const auto running = sends.run();
    Outcome outcome = co_await running;
    co_return outcome;
  }

  HedgeScopes scopes_;
};

}  // namespace

MiddlewarePtr hedge() { return std::make_shared<Hedging>(); }

}  // namespace httpretry
