// The middleware `guards`: lets each send pass the gate, and reports to the gate how it ended.
#include "gate.hpp"
#include "refusal.hpp"

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

// Returns the error for a request that costs more than a rate can ever allow, and nullopt for
// others.
std::optional<Error> error_of_cost(const Request& request, const std::optional<RatePolicy>& rate) {
  const auto cost = request.options().cost;
  const auto allows = [cost](const RatePolicy& one) {
    return one.counts != RatePolicy::Counts::Cost || cost <= static_cast<std::uint64_t>(one.burst);
  };
  if (!rate || (allows(*rate) && std::ranges::all_of(rate->further, allows))) return std::nullopt;
  const auto& exceeded = allows(*rate) ? *std::ranges::find_if_not(rate->further, allows) : *rate;
  Error error(Errc::InvalidRequest,
              "the request costs " + std::to_string(cost) + ", but the rate of " +
                  std::string(request.parsed_url()->origin()) + " allows at most " +
                  std::to_string(exceeded.burst) + " at once (its burst)");
  error.permanent = true;
  return error;
}

// Returns a hash that distinguishes credentials without revealing them, or 0 if the request has
// none.
std::uint64_t credentials_hash(const Request& request, std::uint64_t salt) {
  const auto header = request.headers().get("Authorization");
  const auto& credentials = request.options().credentials;
  if (!header && !credentials) return 0;
  return keyed_hash(salt, header ? *header : std::string_view(credentials->user));
}

// Notifies the observers of what the send has changed since the last call.
void notify_observers(Gate::Turn& turn, const Call& call) {
  auto changes = turn.take_changes();
  if (changes.circuit) {
    changes.circuit->why = changes.why;
    call.emit(&Observer::circuit_changed, *changes.circuit);
  }
  if (changes.limit) call.emit(&Observer::limit_changed, *changes.limit);
  for (const auto& key : changes.resumed) call.emit(&Observer::resumed, std::string_view(key));
}

// Returns whether the outcome says something about the server. A failure on the client's side does
// not. `sent_at`: when the send left the gate. `deadline`: the caller's.
bool is_about_server(const Outcome& outcome, Time sent_at, Time now, Time deadline) {
  if (outcome) return true;
  const auto& error = outcome.error();
  const auto kind = policy::transport_kind(error);
  if (!kind) return false;
  // A timeout at the caller's own deadline counts only if the server had at least a second.
  if (kind == TransportKind::Timeout) {
    return now < deadline || now - sent_at >= std::chrono::seconds(1);
  }
  return !error.exchange.stale_connection && !error.exchange.refused;
}

// Returns how long to wait if the response says with RateLimit that the quota is used up; a
// Retry-After takes precedence. Returns nullopt otherwise, for a redirect, and for a response from
// a cache, which has an Age other than 0.
std::optional<ServerDelay> quota_delay(const Outcome& outcome, WallTime wall_now) {
  if (!outcome || outcome->status / 100 == 3) return std::nullopt;
  const auto& headers = outcome->headers;
  if (!headers.contains("RateLimit") || headers.get("Age").value_or("0") != "0") {
    return std::nullopt;
  }
  static constexpr std::array kQuota{ServerDelaySource::RateLimit};
  // With `throttled`, RateLimit is read even in a success.
  auto delay = server_delay(headers, kQuota, /*throttled=*/true, wall_now);
  if (!delay) return std::nullopt;
  static constexpr std::array kRetryAfter{ServerDelaySource::RetryAfter};
  auto retry_after = server_delay(headers, kRetryAfter, /*throttled=*/true, wall_now);
  return retry_after ? retry_after : delay;
}

// Returns what the end of a send says about the server, for the limits that adapt to it: the
// breaker, the slow start after a pause, and the limit of concurrent sends. `verdict` is the
// policy's classification of the outcome. `sent_at` is when the limits let the send out.
SendEnd end_of_send(const RetryPolicy& policy, const Classified& verdict, const Outcome& outcome,
                    const Call& call, Time sent_at) {
  const auto now = call.scheduler().now();
  const auto& breaker = policy.guards.breaker;
  const bool throttled = verdict.cls == Class::Throttle;
  SendEnd end;
  // A failure on the client's side says nothing about the server.
  end.counts = is_about_server(outcome, sent_at, now, Call::State::admission_deadline(call));
  // For the breaker: a 503 or a broken connection, and if the policy says so, a 429.
  end.failed = verdict.cls == Class::Transient || verdict.cls == Class::Transport ||
               (throttled && breaker && breaker->throttle_fails);
  // For the limit of concurrent sends: signs of an overloaded server.
  end.dropped = throttled || verdict.cls == Class::Transport;
  // For the slow start, which lets more sends out after each response.
  end.responded = outcome.has_value() && !throttled;
  // For the breaker, which may count slow sends as well. There is no first byte without a response.
  const auto first_byte = exchange_of(outcome).timings.first_byte;
  end.took = first_byte > Duration::zero() ? first_byte : Duration(now - sent_at);
  if (verdict.server_delay) {  // a breaker that opens now stays open for at least this time
    end.server_delay = std::min(verdict.server_delay->delay, policy.server_delay.max);
  }
  return end;
}

// Returns how long the server asks all senders to wait, or nullopt if it does not.
std::optional<ServerDelay> requested_pause(const Classified& verdict, const Outcome& outcome,
                                           WallTime wall_now) {
  auto delay =
      verdict.cls == Class::Throttle ? verdict.server_delay : quota_delay(outcome, wall_now);
  if (!delay || delay->do_not_retry || delay->delay <= Duration::zero()) return std::nullopt;
  return delay;
}

// Reports the result of a breaker's probe as soon as its headers are there, so that other sends
// need not wait for its body. Does nothing if a rule of the policy reads the body.
void vote_early(Gate::Turn& turn, const Call& call, const CurrentAttempt& attempt, Time sent_at,
                const Response& head) noexcept {
  if (!turn.probes() || attempt.reads_body(head.status, head.headers)) return;
  try {
    const Outcome outcome(head);
    const auto end = end_of_send(*attempt.policy, attempt.judge(outcome), outcome, call, sent_at);
    turn.vote_early(end, call.scheduler().now(), call.random());
    notify_observers(turn, call);
  } catch (const std::bad_alloc&) {
    // The result is reported when the probe ends.
  }
}

// Lets sends wait at the gate of their state. There is one gate for each SharedState, because each
// client may have a different one.
class Guards final : public Middleware, public PausingGate {
 public:
  // If `users_state` is nullptr, the middleware uses the client's state, or its own if the client
  // has none.
  explicit Guards(std::shared_ptr<SharedState> users_state)
      : has_users_state_(users_state != nullptr),
        state_(users_state ? std::move(users_state) : local_state()) {}
  [[nodiscard]] std::string_view name() const override { return "guards"; }

  // Lets the send wait at the gate if its policy has limits. Without `retry` above there is no
  // policy.
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    auto* const attempt = Call::State::current_attempt(call);
    if (attempt == nullptr || !request.parsed_url()) return next(std::move(request), call);
    const auto& guards = attempt->policy->guards;
    // The response of a send that loses a race is seen only here, and it may ask for a pause.
    const bool uses_gate = must_pass_gate(guards, call) ||
                           (guards.pause.enabled && Call::State::racing(call) != nullptr);
    // If set, `retry` begins a pause that the response asks for. Otherwise send_in_turn does.
    attempt->passed = uses_gate ? nullptr : this;
    if (!uses_gate) return next(std::move(request), call);
    return send_in_turn(*attempt, std::move(request), call, next);
  }

  QueuedBy would_hold(const Request& request, const Call& call) override {
    const auto* const attempt = Call::State::current_attempt(call);
    if (attempt == nullptr || !request.parsed_url()) return QueuedBy::Nothing;
    if (!must_pass_gate(attempt->policy->guards, call)) return QueuedBy::Nothing;
    const auto sender = sender_of(request, call, *attempt, *attempt->policy);
    return gate_of(call).would_hold(sender, call.scheduler().now());
  }

  // Begins a pause if the response asks for one, and notifies the observers. The policy limits how
  // long it lasts.
  void begin_requested_pause(const Request& request, const Call& call,
                             const CurrentAttempt& attempt, const Outcome& outcome,
                             const Classified& verdict) override {
    const auto& policy = *attempt.policy;
    if (!policy.guards.pause.enabled || policy::ignores_servers(policy.server_delay)) return;
    const auto delay = requested_pause(verdict, outcome, call.scheduler().wall_now());
    if (!delay) return;
    const auto now = call.scheduler().now();
    PauseBegun begun;
    begun.until = later(now, std::min(delay->delay, longest_pause_of(policy)));
    begun.source = to_string(delay->source);
    // A 503 says that the whole server is unavailable. Other statuses may be about one endpoint.
    const auto scope = verdict.status == 503 ? GuardScope::Host : GuardScope::Endpoint;
    const auto sender = sender_of(request, call, attempt, policy);
    const auto key = gate_of(call).pause(sender, scope, begun.until, now);
    begun.key = key;
    call.emit(&Observer::paused, begun);
  }

 private:
  // Waits until the limits let the send out, sends it, and reports to them how it ended. Returns an
  // error if the wait was canceled or the send refused.
  Task<Outcome> send_in_turn(const CurrentAttempt& attempt, Request request, Call& call,
                             Next next) {
    const auto& policy = *attempt.policy;
    if (auto error = error_of_cost(request, policy.guards.rate)) co_return *std::move(error);
    auto& scheduler = call.scheduler();
    const auto arrived_at = scheduler.now();
    Gate::Turn turn(gate_of(call), sender_of(request, call, attempt, policy), arrived_at);
    auto held_by = QueuedBy::Nothing;  // the last limit that held the send back
    bool canceled = false;
    auto* const racing = Call::State::racing(call);  // nullptr if the attempt may not be hedged
    if (racing != nullptr) {
      racing->on_gate_reached(*this);
      if (turn.status() == Status::Waiting) {
        racing->on_wait();
        if (racing->is_hedge()) co_return Error(Errc::Canceled, "a hedge does not wait");
      }
    }
    while (!canceled && turn.status() == Status::Waiting) {
      const auto hold = turn.why();
      if (hold.by != held_by) call.emit(&Observer::held_back, hold.by, hold.until);
      held_by = hold.by;
      canceled = !co_await turn.wait(scheduler, call.stop());
    }
    const auto sent_at = scheduler.now();
    const auto waited = sent_at - arrived_at;
    notify_observers(turn, call);
    if (canceled || turn.status() != Status::Granted) {
      const auto origin = request.parsed_url()->origin();
      Error error = canceled ? httpretry::detail::wait_ended(/*canceled=*/true,
                                                             "its turn at " + std::string(origin))
                             : refused(turn.why(), origin, call);
      record_wait(turn, call, held_by, waited, error.exchange);
      co_return error;
    }
    if (racing != nullptr) racing->on_admitted();
    Call admitted = Call::State::admitted_after(call, waited);
    std::function<void(const Response&)> on_headers;
    if (turn.probes()) {
      on_headers = [&](const Response& head) { vote_early(turn, call, attempt, sent_at, head); };
      Call::State::set_watch(admitted, &on_headers);
    }
    Outcome outcome = co_await next(request, admitted);
    const auto verdict = attempt.judge(outcome);
    // Before turn.end(), which may let other sends out: they must observe the pause.
    begin_requested_pause(request, call, attempt, outcome, verdict);
    turn.end(end_of_send(policy, verdict, outcome, call, sent_at), scheduler.now(), call.random());
    notify_observers(turn, call);
    record_wait(turn, call, held_by, waited, exchange_of(outcome));
    co_return outcome;
  }

  [[nodiscard]] const std::shared_ptr<SharedState>& state_of(const Call& call) const {
    const auto& shared = Call::State::shared_state_of(call);
    return has_users_state_ || !shared ? state_ : shared;
  }

  // Returns whether a send must pass the gate. Cheap: a test of a flag if guards are off, and one
  // atomic load if only pauses are on.
  [[nodiscard]] bool must_pass_gate(const GuardPolicy& guards, const Call& call) const {
    return guards.has_limits() || (guards.pause.enabled && !state_of(call)->quiet());
  }

  Gate& gate_of(const Call& call) {
    const auto& state = state_of(call);
    const std::lock_guard lock(mutex_);
    auto& gate = gates_[state.get()];
    if (!gate) gate = std::make_unique<Gate>(state);
    return *gate;
  }

  // Returns what identifies the limits of the send, and how long it may wait for them.
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
    sender.ask.cost = static_cast<std::int64_t>(request.options().cost);
    const auto respond_by = call.limits(request).respond_by;
    sender.deadline = std::min(Call::State::admission_deadline(call), respond_by);
    if (const auto* const longest_pause = call.get<LongestPause>()) {
      sender.pause_deadline = later(call.scheduler().now(), longest_pause->time);
    }
    sender.ask.random = call.random();
    return sender;
  }

  // Returns the error for a send that the limit `hold` has refused, with the time at which that
  // limit may allow a send.
  static Error refused(const Hold& hold, std::string_view origin, const Call& call) {
    auto error = error_of_refusal(hold, origin, call.scheduler().now());
    error.permanent = true;
    error.history.stop_reason = stop_reason(error.code);
    if (hold.until != kNever) {
      const auto left = hold.until - call.scheduler().now();
      error.history.retry_at = call.scheduler().wall_now() + left;
    }
    return error;
  }

  // Records in `exchange` how long the send waited and what held it back, and in the history the
  // current state of the limits.
  static void record_wait(const Gate::Turn& turn, const Call& call, QueuedBy held_by,
                          Duration waited, Exchange& exchange) {
    exchange.timings.queued += waited;
    if (exchange.queued_by == QueuedBy::Nothing) exchange.queued_by = held_by;
    auto& scheduler = call.scheduler();
    auto facts = std::make_shared<GuardFacts>(turn.facts(scheduler.now(), scheduler.wall_now()));
    auto& recorded = call.history().guards;
    if (facts->limits) {  // the waits for the rate add up over all sends of the call
      if (recorded && recorded->limits) facts->limits->rate_wait = recorded->limits->rate_wait;
      if (held_by == QueuedBy::Rate) facts->limits->rate_wait += waited;
    }
    recorded = std::move(facts);
  }

  const bool has_users_state_;
  const std::shared_ptr<SharedState> state_;
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
