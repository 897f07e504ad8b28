// The middleware `hedge`: finds what is shared with other calls, and lets the sends of an attempt
// race.
#include "hedged_attempt.hpp"

#include "lib/flow/call_state.hpp"

#include <httpretry/guard/hedge.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <string>

namespace httpretry {
namespace {

std::string scope_text(GuardScope scope, const CurrentAttempt& attempt, const Request& request) {
  const auto& resolved = attempt.resolved;
  const auto& url = request.parsed_url();
  const auto origin = url ? std::string(url->origin()) : std::string();
  if (scope == GuardScope::Policy) return "policy";
  // A request that no endpoint of the policy file matches shares with its host.
  if (scope == GuardScope::Host || resolved == nullptr || resolved->identity.empty()) return origin;
  return resolved->identity + " " + origin;
}

// "hedge https://api.example.com /policies/careful"
std::string key_of(const CurrentAttempt& attempt, const Request& request) {
  auto key = "hedge " + scope_text(attempt.policy->hedge->scope, attempt, request);
  const auto& resolved = attempt.resolved;
  if (resolved && resolved->guard_names) {
    const auto& name = resolved->guard_names->hedge;
    if (!name.empty()) key.append(" ").append(name);
  }
  return key;
}

class Hedging final : public Middleware {
 public:
  [[nodiscard]] std::string_view name() const override { return "hedge"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    auto* const attempt = Call::State::current_attempt(call);
    if (attempt == nullptr || !attempt->policy->hedge) return next(std::move(request), call);
    return race(*attempt, std::move(request), call, next);
  }

 private:
  Task<Outcome> race(CurrentAttempt& attempt, Request request, Call& call, Next next) {
    const auto account = account_of(key_of(attempt, request), call);
    guard::HedgedAttempt sends(attempt, *account, request, call, next);
    const auto running = sends.run();
    Outcome outcome = co_await running;
    co_return outcome;
  }

  [[nodiscard]] std::shared_ptr<HedgeAccount> account_of(const std::string& key, const Call& call) {
    const auto now = call.scheduler().now();
    const auto& shared = Call::State::shared_state_of(call);
    if (shared) return shared->hedges(key, now);
    return own_.at(key, now);
  }

  guard::HedgeScopes own_;
};

}  // namespace

MiddlewarePtr hedge() { return std::make_shared<Hedging>(); }

}  // namespace httpretry
