#include <httpretry/middleware/guarded.hpp>

#include "lib/core/base/random.hpp"
#include "lib/core/guard/gate.hpp"
#include "lib/core/guard/refusal.hpp"

#include <httpretry/flow/task.hpp>
#include <httpretry/guard/local_state.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace httpretry {

using guard::Gate;

namespace {

// A scheduler for a blocking retry_call: each wait blocks the thread until it ends, so a coroutine
// on it never suspends.
class BlockingScheduler final : public Scheduler {
 public:
  explicit BlockingScheduler(const BlockingClock& clock) : clock_(clock) {}
  [[nodiscard]] Time now() const override { return clock_.now(); }
  [[nodiscard]] WallTime wall_now() const override { return clock_.wall_now(); }
  void post(std::coroutine_handle<> handle) override { handle.resume(); }
  Task<bool> sleep_until(Time when, std::stop_token stop) override {
    co_return clock_.wait_until(when, stop);
  }
  void run_until(const std::atomic<bool>& /*done*/) override {}

 private:
  const BlockingClock& clock_;
};

// Returns what the result of a function call says about the service, for the limits that adapt to
// it. It says nothing if the caller has stopped the call.
SendEnd end_of_call(const RetryPolicy& policy, const AttemptResultBase& result, Duration took,
                    bool stopped) {
  const auto& breaker = policy.guards.breaker;
  const bool throttled = result.cls == Class::Throttle;
  const bool broken = result.cls == Class::Transient || result.cls == Class::Transport;
  SendEnd end;
  end.counts = !stopped;
  end.failed = broken || (throttled && breaker && breaker->throttle_fails);
  end.dropped = throttled || result.cls == Class::Transport;
  end.responded = !broken && !throttled;
  end.took = took;
  end.server_delay = std::min(result.delay.value_or(Duration::zero()), policy.server_delay.max);
  return end;
}

}  // namespace

struct CallGuards::State {
  State(const RetryPolicy& policy_, std::string name_, std::shared_ptr<SharedState> state)
      : policy(std::make_shared<const RetryPolicy>(policy_)),
        name(std::move(name_)),
        gate(state ? std::move(state) : local_state()) {}

  const std::shared_ptr<const RetryPolicy> policy;
  const std::string name;
  Gate gate;
};

CallGuards::CallGuards(const RetryPolicy& policy, std::string name,
                       std::shared_ptr<SharedState> state)
    : state_(std::make_unique<State>(policy, std::move(name), std::move(state))) {
  check(policy);
}

CallGuards::~CallGuards() = default;

struct GuardedAttempt::State {
  State(CallGuards::State& guards_, AttemptInfo info_)
      : guards(guards_), info(std::move(info_)), result(Class::Permanent, "canceled") {}

  [[nodiscard]] guard::Sender sender() const {
    guard::Sender sender;
    sender.policy = {guards.policy, &guards.policy->guards};
    sender.host = guards.name;
    sender.ask.priority = guards.policy->guards.priority;
    sender.ask.is_retry = info.number > 1;
    sender.ask.random = random_number();
    sender.deadline = info.call_deadline;
    return sender;
  }

  [[nodiscard]] const BlockingClock& clock() const {
    static const BlockingClock system_clock;
    return info.clock == nullptr ? system_clock : *info.clock;
  }
  [[nodiscard]] Time now() const {
    return info.scheduler == nullptr ? clock().now() : info.scheduler->now();
  }

  CallGuards::State& guards;
  AttemptInfo info;
  AttemptResultBase result;  // if the function must not be called
  Time began{};
  std::optional<Gate::Turn> turn;  // from `co_enter` on
};

GuardedAttempt::GuardedAttempt(CallGuards& guards, AttemptInfo attempt)
    : state_(std::make_unique<State>(*guards.state_, std::move(attempt))) {}
GuardedAttempt::~GuardedAttempt() = default;

bool GuardedAttempt::enter() {
  BlockingScheduler blocking(state_->clock());
  state_->info.scheduler = &blocking;
  // On this scheduler `co_enter` never suspends, so it has ended when `run_into` returns.
  const auto entering = std::make_shared<detail::Running<bool>>();
  detail::run_into(entering, co_enter());
  state_->info.scheduler = nullptr;
  return entering->take();  // throws what `co_enter` has thrown
}

// Waits until the guards of the policy (pauses, rate, circuit breaker, limit of concurrent calls)
// let this attempt begin, and returns true. The attempt's deadline then moves by the wait, which
// does not count toward the attempt's timeout. Returns false if the function must not be called,
// because the call was canceled or a guard refuses. `result` then has the reason and, if it is
// known, the delay after which the guard may let an attempt begin.
Task<bool> GuardedAttempt::co_enter() {
  auto& info = state_->info;
  if (info.scheduler == nullptr) {
    throw std::logic_error("a guarded coroutine function must be called by co_retry_call");
  }
  auto& scheduler = *info.scheduler;
  const auto arrived_at = scheduler.now();
  // The place of this attempt among those that wait for the same guards, whose gate grants or
  // refuses it. It stays in `state_`, because `end` reports the result of the attempt to it.
  auto& turn = state_->turn.emplace(state_->guards.gate, state_->sender(), arrived_at);
  bool canceled = false;
  // `wait` may return while the turn still waits, for example when it wakes to check a limit.
  while (!canceled && turn.status() == Gate::Turn::Status::Waiting) {
    canceled = !co_await turn.wait(scheduler, info.stop);
  }
  state_->began = scheduler.now();
  // `result` has the reason "canceled" from the beginning. If the gate has just granted the turn,
  // the destructor of the turn gives the grant back.
  if (canceled) co_return false;
  if (turn.status() != Gate::Turn::Status::Granted) {
    const auto refusal = turn.why();  // its `until` is kNever if no time is known
    state_->result.reason =
        guard::error_of_refusal(refusal, state_->guards.name, scheduler.now()).message;
    if (refusal.until != kNever) state_->result.delay = refusal.until - scheduler.now();
    co_return false;
  }
  info.deadline = std::min(info.call_deadline, later(info.deadline, state_->began - arrived_at));
  co_return true;
}

const AttemptInfo& GuardedAttempt::info() const { return state_->info; }

const AttemptResultBase& GuardedAttempt::result() const { return state_->result; }

// Reports the result to the guards. Begins a pause first if the service asked for one.
void GuardedAttempt::end(const AttemptResultBase& result) {
  const auto now = state_->now();
  const auto& policy = *state_->guards.policy;
  const auto delay = result.delay.value_or(Duration::zero());
  if (policy.guards.pause.enabled && result.cls == Class::Throttle && delay > Duration::zero()) {
    const auto until = later(now, std::min(delay, guard::longest_pause_of(policy)));
    state_->guards.gate.pause(state_->sender(), GuardScope::Host, until, now);
  }
  const bool stopped = state_->info.stop.stop_requested();
  const auto ended = end_of_call(policy, result, now - state_->began, stopped);
  state_->turn->end(ended, now, random_number());
}

}  // namespace httpretry
