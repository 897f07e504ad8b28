// The middleware `guards`: asks the gate before each send, and tells it how the send ended.
#include "gate.hpp"

#include "lib/flow/call_state.hpp"
#include "lib/retry/policy_limits.hpp"

#include <httpretry/guard/guards.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/retry/classify.hpp>

#include <algorithm>
#include <array>
#include <functional>

namespace httpretry {
namespace guard {
namespace {

using Status = Gate::Turn::Status;

std::uint64_t credentials_of(const Request& request) {
  const auto header = request.headers().get("Authorization");
  if (header) return std::hash<std::string_view>()(*header);
  const auto& own = request.options().credentials;
  return own ? std::hash<std::string>()(own->user) : 0;
}

Errc code_of(QueuedBy by) {
  switch (by) {
    case QueuedBy::Pause:
    case QueuedBy::Ramp: return Errc::Paused;
    case QueuedBy::Circuit: return Errc::CircuitOpen;
    case QueuedBy::Rate: return Errc::RateLimited;
    default: return Errc::QueueFull;
  }
}

std::string text_of(const Wait& wait, std::string_view host) {
  const auto whose = " of " + std::string(host);
  switch (wait.by) {
    case QueuedBy::Pause: return "the pause" + whose + " that the server asked for ends too late";
    case QueuedBy::Ramp: return "after a pause, the turn" + whose + " comes too late";
    case QueuedBy::Circuit: {
      auto text = "the circuit" + whose + " is open";
      if (!wait.why.empty()) text += " (" + wait.why + ")";
      return text;
    }
    case QueuedBy::Rate: return "the rate" + whose + " allows it too late";
    default: return "too many sends wait for the limit" + whose;
  }
}

// Whether the outcome says something about the server. What went wrong on our side does not.
bool counts(const Outcome& outcome, Time sent, Time now, Time deadline) {
  if (outcome) return true;
  const auto& error = outcome.error();
  switch (error.code) {
    case Errc::InvalidRequest:
    case Errc::TooLarge:
    case Errc::Canceled:
    case Errc::Paused:
    case Errc::CircuitOpen:
    case Errc::RateLimited:
    case Errc::QueueFull:
    case Errc::Internal:
    case Errc::Status: return false;
    case Errc::Timeout:  // the caller's own end says little, unless the server had a second
      return now < deadline || now - sent >= std::chrono::seconds(1);
    default: return !error.exchange.stale_connection && !error.exchange.refused;
  }
}

class Guards final : public Middleware, public detail::SendGate {
 public:
  explicit Guards(std::shared_ptr<SharedState> state) : gate_(std::move(state)) {}
  [[nodiscard]] std::string_view name() const override { return "guards"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    Call::State::of(call).gate = this;
    const auto* const attempt = Call::State::attempt_policy(call);
    const auto& url = request.parsed_url();
    if (attempt == nullptr || !url) return next(std::move(request), call);
    const auto& guards = attempt->policy->guards;
    if (!guards.has_limits() && !guards.pause.enabled) return next(std::move(request), call);
    return guarded(std::move(request), call, next);
  }

  QueuedBy would_hold(const Request& request, const Call& call) override {
    const auto* const attempt = Call::State::attempt_policy(call);
    if (attempt == nullptr || !request.parsed_url()) return QueuedBy::Nothing;
    if (!attempt->policy->guards.has_limits() && gate_.quiet()) return QueuedBy::Nothing;
    return gate_.would_hold(sender_of(request, call), call.scheduler().now());
  }

 private:
  static Sender sender_of(const Request& request, const Call& call) {
    const auto& attempt = *Call::State::attempt_policy(call);
    Sender sender;
    sender.policy = {attempt.policy, &attempt.policy->guards};
    sender.host = request.parsed_url()->origin();
    if (attempt.resolved) sender.endpoint = attempt.resolved->identity;
    if (attempt.resolved && attempt.resolved->guard_names) {
      const auto& names = *attempt.resolved->guard_names;
      sender.pause_name = names.pause;
      sender.rate_name = names.rate;
      sender.concurrency_name = names.concurrency;
      sender.breaker_name = names.breaker;
    }
    sender.credentials = credentials_of(request);
    sender.priority = request.options().priority.value_or(sender.policy->priority);
    sender.is_retry = attempt.is_retry;
    sender.limit = std::min(Call::State::admission_deadline(call), request.options().respond_by);
    sender.chance = call.random();
    return sender;
  }

  Task<Outcome> guarded(Request request, Call& call, Next next) {
    const auto policy = Call::State::attempt_policy(call)->policy;
    if (!policy->guards.has_limits() && gate_.quiet()) {
      Outcome unheld = co_await next(request, call);
      hear(request, call, unheld);
      co_return unheld;
    }
    auto& scheduler = call.scheduler();
    const auto since = scheduler.now();
    const auto origin = request.parsed_url()->origin();
    auto sender = sender_of(request, call);
    Gate::Turn turn(gate_, sender, since);
    auto by = QueuedBy::Nothing;
    bool canceled = false;
    while (!canceled && turn.status() == Status::Waiting) {
      by = turn.why().by;
      const bool whole = co_await turn.wait(scheduler, call.stop());
      canceled = !whole;
    }
    const auto waited = scheduler.now() - since;
    tell(turn, call);
    if (canceled || turn.status() != Status::Granted) {
      Error error = canceled ? detail::wait_ended(true, "its turn at " + origin)
                             : refused(turn.why(), origin, call);
      error.exchange.timings.queued = waited;
      error.exchange.queued_by = by;
      remember(turn, call, by, waited);
      co_return error;
    }
    if (auto* const watch = Call::State::attempt_policy(call)->watch) watch->sent(scheduler.now());
    const auto sent = scheduler.now();
    Call admitted = Call::State::admitted_after(call, waited);
    Outcome outcome = co_await next(request, admitted);
    hear(request, call, outcome);
    turn.end(end_of(*policy, outcome, call, sent), scheduler.now(), call.random());
    tell(turn, call);
    remember(turn, call, by, waited);
    auto& exchange = exchange_of(outcome);
    exchange.timings.queued += waited;
    if (exchange.queued_by == QueuedBy::Nothing) exchange.queued_by = by;
    co_return outcome;
  }

  static SendEnd end_of(const RetryPolicy& policy, const Outcome& outcome, const Call& call,
                        Time sent) {
    const auto now = call.scheduler().now();
    const auto found = classify(policy, Observed(outcome, call.scheduler().wall_now()));
    const auto& breaker = policy.guards.breaker;
    const bool throttled = found.cls == Class::Throttle;
    SendEnd end;
    end.counts = counts(outcome, sent, now, Call::State::admission_deadline(call));
    if (throttled && breaker && !breaker->throttle_fails) end.failed = false;
    end.failed = found.cls == Class::Transient || found.cls == Class::Transport ||
                 (throttled && breaker && breaker->throttle_fails);
    end.dropped = throttled || found.cls == Class::Transport;
    end.responded = outcome.has_value() && !throttled;
    const auto first_byte = exchange_of(outcome).timings.first_byte;
    end.took = first_byte > Duration::zero() ? first_byte : now - sent;
    if (found.server_delay) {
      end.server_delay = std::min(found.server_delay->delay, policy.server_delay.max);
    }
    return end;
  }

  // Pauses where the server asks for it.
  void hear(const Request& request, const Call& call, const Outcome& outcome) {
    const auto& policy = *Call::State::attempt_policy(call)->policy;
    if (!policy.guards.pause.enabled || policy::ignores_servers(policy.server_delay)) return;
    const auto status = outcome ? outcome->status : outcome.error().status;
    if (status != 429 && status < 500 && !asks_for_less(outcome)) return;
    const auto wall_now = call.scheduler().wall_now();
    auto delay = classify(policy, Observed(outcome, wall_now)).server_delay;
    if (!delay && outcome) delay = nothing_left(*outcome, wall_now);
    if (!delay || delay->do_not_retry || delay->delay <= Duration::zero()) return;
    auto most = std::min(policy.guards.pause.max, policy.server_delay.max_over_own);
    if (policy.server_delay.over_max == ServerDelayPolicy::OverMax::Clamp) {
      most = std::min(most, policy.server_delay.max);
    }
    const auto now = call.scheduler().now();
    const auto until = later(now, std::min(delay->delay, most));
    const auto sender = sender_of(request, call);
    const auto scope = status == 503 ? GuardScope::Host : GuardScope::Endpoint;
    if (!gate_.pause(sender, scope, until, now)) return;
    PauseBegun begun;
    begun.key = sender.host;
    begun.until = until;
    begun.source = to_string(delay->source);
    call.emit(&Observer::paused, begun);
  }

  static bool asks_for_less(const Outcome& outcome) {
    return outcome && outcome->status < 300 && outcome->headers.contains("RateLimit") &&
           outcome->headers.get("Age").value_or("0") == "0";
  }

  static std::optional<ServerDelay> nothing_left(const Response& response, WallTime wall_now) {
    static constexpr std::array kSources{ServerDelaySource::RateLimit};
    return server_delay(response.headers, kSources, true, wall_now);
  }

  Error refused(const Wait& why, const std::string& origin, const Call& call) {
    Error error(code_of(why.by), text_of(why, origin));
    error.permanent = true;
    error.history.stop_reason = stop_reason(error.code);
    if (why.until != kNever) {
      const auto left = why.until - call.scheduler().now();
      error.history.retry_at = call.scheduler().wall_now() + left;
    }
    return error;
  }

  static void remember(const Gate::Turn& turn, const Call& call, QueuedBy by, Duration waited) {
    auto& scheduler = call.scheduler();
    auto facts = std::make_shared<GuardFacts>(turn.facts(scheduler.now(), scheduler.wall_now()));
    auto& kept = call.history().guards;
    if (facts->limits) {
      if (kept && kept->limits) facts->limits->rate_wait = kept->limits->rate_wait;
      if (by == QueuedBy::Rate) facts->limits->rate_wait += waited;
    }
    kept = std::move(facts);
  }

  static void tell(Gate::Turn& turn, const Call& call) {
    auto changes = turn.take_changes();
    if (changes.circuit) {
      changes.circuit->why = changes.why;
      call.emit(&Observer::circuit_changed, *changes.circuit);
    }
    if (changes.limit) call.emit(&Observer::limit_changed, *changes.limit);
    for (const auto& key : changes.resumed) {
      call.emit(&Observer::resumed, std::string_view(key));
    }
  }

  Gate gate_;
};

}  // namespace
}  // namespace guard

MiddlewarePtr guards() { return guards(local_state()); }

MiddlewarePtr guards(std::shared_ptr<SharedState> state) {
  return std::make_shared<guard::Guards>(std::move(state));
}

}  // namespace httpretry
