// The middleware `hedge`: finds the HedgeAccount that calls share, and runs each attempt as a
// HedgedAttempt.
#include "hedged_attempt.hpp"
#include "sender.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/guard/hedge.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <string>

namespace httpretry {
namespace {

// Returns the key of the HedgeAccount, for example "hedge https://api.example.com
// /policies/careful".
std::string key_of(const CurrentAttempt& attempt, const Request& request) {
  guard::Sender sender;
  if (const auto& url = request.parsed_url()) sender.host = url->origin();
  const auto& resolved = attempt.resolved;
  std::string endpoint;
  if (resolved && !resolved->identity.empty()) {
    endpoint = resolved->identity + " " + std::string(sender.host);
  }
  sender.endpoint = endpoint;
  const bool named = resolved && resolved->guard_names;
  return guard::state_key("hedge", attempt.policy->hedge->scope,
                          named ? resolved->guard_names->hedge : "", sender);
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
  // Runs the attempt with its hedges. Returns the outcome of the send that decides.
  Task<Outcome> race(CurrentAttempt& attempt, Request request, Call& call, Next next) {
    const auto& shared = Call::State::shared_state_of(call);
    const auto account =
        (shared ? shared : own_)->hedges(key_of(attempt, request), call.scheduler().now());
    guard::HedgedAttempt sends(attempt, *account, request, call, next);
    const auto running = sends.run();
    Outcome outcome = co_await running;
    co_return outcome;
  }

  const std::shared_ptr<SharedState> own_ = local_state();
};

}  // namespace

MiddlewarePtr hedge() { return std::make_shared<Hedging>(); }

}  // namespace httpretry
