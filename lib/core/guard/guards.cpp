// The middleware `guards`: lets each send pass the gate, and reports to the gate how it ended.
#include "gate.hpp"

#include "lib/core/base/keyed_hash.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/retry/error_codes.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <httpretry/guard/guards.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/retry/classify.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>

namespace httpretry {
namespace guard {
namespace {

using Status = Gate::Turn::Status;

Error error_of(const Hold& wait, std::string_view host) {
  const auto whose = " of " + std::string(host);
  switch (wait.by) {
    case QueuedBy::Pause:
      return Error(Errc::Paused, "the pause" + whose + " that the server asked for ends too late");
    case QueuedBy::Ramp:
      return Error(Errc::Paused, "after a pause, the turn" + whose + " comes too late");
    case QueuedBy::Circuit: {
      const auto why = wait.why.empty() ? "" : " (" + wait.why + ")";
      return Error(Errc::CircuitOpen, "the circuit" + whose + " is open" + why);
    }
    case QueuedBy::Rate:
      return Error(Errc::RateLimited, "the rate" + whose + " allows it too late");
    case QueuedBy::SharedState:
      return Error(Errc::RateLimited, "the shared limits" + whose + " were not known in time");
    default: return Error(Errc::QueueFull, "too many sends wait for the limit" + whose);
  }
}

// Returns a hash that distinguishes credentials without revealing them.
std::uint64_t credentials_hash(const Request& request, std::uint64_t salt) {
  const auto header = request.headers().get("Authorization");
  const auto& own = request.options().credentials;
  if (!header && !own) return 0;
  return keyed_hash(salt, header ? *header : std::string_view(own->user));
}

void notify_observers(Gate::Turn& turn, const Call& call) {
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

// Returns whether the outcome says something about the server. A failure on the client's side does
// not.
bool is_about_server(const Outcome& outcome, Time sent, Time now, Time deadline) {
  if (outcome) return true;
  const auto& error = outcome.error();
  const auto kind = policy::transport_kind(error);
  if (!kind) return false;
  // A timeout at the caller's own deadline counts only if the server had at least a second.
  if (kind == TransportKind::Timeout) {
    return now < deadline || now - sent >= std::chrono::seconds(1);
  }
  return !error.exchange.stale_connection && !error.exchange.refused;
}

// Returns how long to wait if the response says with RateLimit that the quota is used up. Redirects
// and responses from a cache do not count.
std::optional<ServerDelay> quota_delay(const Outcome& outcome, WallTime wall_now) {
  if (!outcome || outcome->status / 100 == 3) return std::nullopt;
  const auto& headers = outcome->headers;
  if (!headers.contains("RateLimit") || headers.get("Age").value_or("0") != "0") {
    return std::nullopt;
  }
  static constexpr std::array kQuota{ServerDelaySource::RateLimit};
  auto delay = server_delay(headers, kQuota, true, wall_now);
  if (!delay) return std::nullopt;
  static constexpr std::array kAsked{ServerDelaySource::RetryAfter};
  auto asked = server_delay(headers, kAsked, true, wall_now);
  return asked ? asked : delay;
}

// Returns what the end of a send says about the server. `sent`: when the send left the gate.
SendEnd end_of(const RetryPolicy& policy, const Classified& found, const Outcome& outcome,
               const Call& call, Time sent) {
  const auto now = call.scheduler().now();
  const auto& breaker = policy.guards.breaker;
  const bool throttled = found.cls == Class::Throttle;
  SendEnd end;
  end.counts = is_about_server(outcome, sent, now, Call::State::admission_deadline(call));
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

// Returns how long the server asks all senders to wait, or nullopt if it does not.
std::optional<ServerDelay> requested_pause(const Classified& found, const Outcome& outcome,
                                           WallTime wall_now) {
  auto delay = found.cls == Class::Throttle ? found.server_delay : quota_delay(outcome, wall_now);
  if (!delay || delay->do_not_retry || delay->delay <= Duration::zero()) return std::nullopt;
  return delay;
}

// Lets a probe vote as soon as its headers are there, so that other sends need not wait for its
// body. Does nothing if a rule of the policy reads the body.
void vote_early(Gate::Turn& turn, const Call& call, const CurrentAttempt& attempt, Time sent,
                const Response& head) noexcept {
  if (!turn.probes() || attempt.reads_body(head.status, head.headers)) return;
  try {
    const Outcome outcome(head);
    const auto end = end_of(*attempt.policy, attempt.judge(outcome), outcome, call, sent);
    turn.vote_early(end, call.scheduler().now(), call.random());
    notify_observers(turn, call);
  } catch (const std::bad_alloc&) {  // the probe votes when it ends
  }
}

// Lets sends wait at the gate of their state. There is one gate for each SharedState, because each
// client may have a different one.
class Guards final : public Middleware, public PausingGate {
 public:
  // If `given` is nullptr, the middleware uses the client's state, or its own if the client has
  // none.
  explicit Guards(std::shared_ptr<SharedState> given)
      : given_(given != nullptr), own_(given ? std::move(given) : local_state()) {}
  [[nodiscard]] std::string_view name() const override { return "guards"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    auto* const attempt = Call::State::current_attempt(call);
    if (attempt == nullptr || !request.parsed_url()) return next(std::move(request), call);
    const auto& guards = attempt->policy->guards;
    // The response of a send that loses a race is seen only here, and it may ask for a pause.
    const bool passes_gate = must_pass_gate(guards, call) ||
                             (guards.pause.enabled && Call::State::racing(call) != nullptr);
    attempt->passed = passes_gate ? nullptr : this;
    if (!passes_gate) return next(std::move(request), call);
    return send_in_turn(*attempt, std::move(request), call, next);
  }

  QueuedBy would_hold(const Request& request, const Call& call) override {
    const auto* const attempt = Call::State::current_attempt(call);
    if (attempt == nullptr || !request.parsed_url()) return QueuedBy::Nothing;
    if (!must_pass_gate(attempt->policy->guards, call)) return QueuedBy::Nothing;
    const auto sender = sender_of(request, call, *attempt, *attempt->policy);
    return gate_of(call).would_hold(sender, call.scheduler().now());
  }

  void hear(const Request& request, const Call& call, const CurrentAttempt& attempt,
            const Outcome& outcome, const Classified& found) override {
    const auto& policy = *attempt.policy;
    if (!policy.guards.pause.enabled || policy::ignores_servers(policy.server_delay)) return;
    const auto delay = requested_pause(found, outcome, call.scheduler().wall_now());
    if (!delay) return;
    auto most = std::min(policy.guards.pause.max, policy.server_delay.max_over_own);
    if (policy.server_delay.over_max == ServerDelayPolicy::OverMax::Clamp) {
      most = std::min(most, policy.server_delay.max);
    }
    const auto now = call.scheduler().now();
    PauseBegun begun;
    begun.until = later(now, std::min(delay->delay, most));
    begun.source = to_string(delay->source);
    const bool whole_host = found.status == 503;
    const auto sender = sender_of(request, call, attempt, policy);
    const auto key = gate_of(call).pause(
        sender, whole_host ? GuardScope::Host : GuardScope::Endpoint, begun.until, now);
    begun.key = key;
    call.emit(&Observer::paused, begun);
  }

 private:
  Task<Outcome> send_in_turn(const CurrentAttempt& attempt, Request request, Call& call,
                             Next next) {
    const auto& policy = *attempt.policy;
    auto& scheduler = call.scheduler();
    const auto since = scheduler.now();
    Gate::Turn turn(gate_of(call), sender_of(request, call, attempt, policy), since);
    auto by = QueuedBy::Nothing;
    bool canceled = false;
    auto* const racing = Call::State::racing(call);
    if (racing != nullptr) {
      racing->passes(*this);
      if (turn.status() == Status::Waiting) {
        racing->waits();
        if (racing->is_hedge()) co_return Error(Errc::Canceled, "a hedge does not wait");
      }
    }
    while (!canceled && turn.status() == Status::Waiting) {
      by = turn.why().by;
      const bool whole = co_await turn.wait(scheduler, call.stop());
      canceled = !whole;
    }
    const auto sent = scheduler.now();
    const auto waited = sent - since;
    notify_observers(turn, call);
    if (canceled || turn.status() != Status::Granted) {
      const auto origin = request.parsed_url()->origin();
      Error error = canceled ? detail::wait_ended(true, "its turn at " + std::string(origin))
                             : refused(turn.why(), origin, call);
      remember(turn, call, by, waited, error.exchange);
      co_return error;
    }
    if (racing != nullptr) racing->admitted();
    Call admitted = Call::State::admitted_after(call, waited);
    std::function<void(const Response&)> watch;
    if (turn.probes()) {
      watch = [&](const Response& head) { vote_early(turn, call, attempt, sent, head); };
      Call::State::set_watch(admitted, &watch);
    }
    Outcome outcome = co_await next(request, admitted);
    // This comes first, because the end of this send may let others out, and they must observe the
    // pause.
    const auto found = attempt.judge(outcome);
    hear(request, call, attempt, outcome, found);
    turn.end(end_of(policy, found, outcome, call, sent), scheduler.now(), call.random());
    notify_observers(turn, call);
    remember(turn, call, by, waited, exchange_of(outcome));
    co_return outcome;
  }

  [[nodiscard]] const std::shared_ptr<SharedState>& state_of(const Call& call) const {
    const auto& shared = Call::State::shared_state_of(call);
    return given_ || !shared ? own_ : shared;
  }

  // Returns whether a send must pass the gate. Cheap: a test of a flag if guards are off, and one
  // atomic load if only pauses are on.
  [[nodiscard]] bool must_pass_gate(const GuardPolicy& guards, const Call& call) const {
    if (guards.has_limits()) return true;
    if (!guards.pause.enabled) return false;
    return !state_of(call)->quiet();
  }

  Gate& gate_of(const Call& call) {
    const auto& state = state_of(call);
    const std::lock_guard lock(mutex_);
    auto& gate = gates_[state.get()];
    if (!gate) gate = std::make_unique<Gate>(state);
    return *gate;
  }

  [[nodiscard]] Sender sender_of(const Request& request, const Call& call,
                                 const CurrentAttempt& attempt, const RetryPolicy& policy) const {
    Sender sender;
    sender.policy = {attempt.policy, &policy.guards};
    sender.host = request.parsed_url()->origin();
    if (const auto& resolved = attempt.resolved) {
      sender.endpoint = resolved->identity;
      if (resolved->guard_names) sender.names = resolved->guard_names.get();
    }
    sender.credentials = credentials_hash(request, state_of(call)->salt());
    sender.ask.priority = request.options().priority.value_or(policy.guards.priority);
    sender.ask.is_retry = attempt.is_retry;
    sender.limit = std::min(Call::State::admission_deadline(call), call.limits(request).respond_by);
    if (const auto* const longest = call.get<LongestPause>()) {
      sender.pause_limit = later(call.scheduler().now(), longest->time);
    }
    sender.ask.random = call.random();
    return sender;
  }

  static Error refused(const Hold& why, std::string_view origin, const Call& call) {
    auto error = error_of(why, origin);
    error.permanent = true;
    error.history.stop_reason = stop_reason(error.code);
    if (why.until != kNever) {
      const auto left = why.until - call.scheduler().now();
      error.history.retry_at = call.scheduler().wall_now() + left;
    }
    return error;
  }

  static void remember(const Gate::Turn& turn, const Call& call, QueuedBy by, Duration waited,
                       Exchange& exchange) {
    exchange.timings.queued += waited;
    if (exchange.queued_by == QueuedBy::Nothing) exchange.queued_by = by;
    auto& scheduler = call.scheduler();
    auto facts = std::make_shared<GuardFacts>(turn.facts(scheduler.now(), scheduler.wall_now()));
    auto& kept = call.history().guards;
    if (facts->limits) {
      if (kept && kept->limits) facts->limits->rate_wait = kept->limits->rate_wait;
      if (by == QueuedBy::Rate) facts->limits->rate_wait += waited;
    }
    kept = std::move(facts);
  }

  const bool given_;
  const std::shared_ptr<SharedState> own_;
  std::mutex mutex_;  // guards the gates
  std::unordered_map<const SharedState*, std::unique_ptr<Gate>> gates_;
};

}  // namespace
}  // namespace guard

MiddlewarePtr guards() { return std::make_shared<guard::Guards>(nullptr); }

MiddlewarePtr guards(std::shared_ptr<SharedState> state) {
  return std::make_shared<guard::Guards>(std::move(state));
}

}  // namespace httpretry
