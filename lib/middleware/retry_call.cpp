#include <httpretry/middleware/retry_call.hpp>

#include "budgets.hpp"

#include "lib/flow/random.hpp"
#include "lib/retry/progress.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace httpretry {
namespace {

Classified classified_as(const TriedFacts& tried) {
  Classified result;
  result.cls = tried.cls;
  result.refused = tried.cls == Class::Throttle;
  if (tried.delay && tried.cls != Class::Success) {
    result.hint.emplace(std::max(*tried.delay, Duration::zero()), HintSource::Function, "");
  }
  return result;
}

}  // namespace

TriedFacts::TriedFacts(Class outcome, std::string why) : cls(outcome), reason(std::move(why)) {}

Trying::Trying(int count, Time end, std::stop_token token)
    : number(count), deadline(end), stop(std::move(token)) {}

CallBudget::CallBudget(const BudgetPolicy& policy)
    : shared_(std::make_shared<SharedBudget>(policy, Time())) {}
std::optional<std::int64_t> CallBudget::left(Time now) const { return shared_->left(now); }

BlockingClock::~BlockingClock() = default;
Time BlockingClock::now() const { return std::chrono::steady_clock::now(); }
WallTime BlockingClock::wall_now() const { return std::chrono::system_clock::now(); }

bool BlockingClock::wait_until(Time when, const std::stop_token& stop) const {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock(mutex);
  nothing.wait_until(lock, stop, when, [] { return false; });
  return !stop.stop_requested();
}

namespace detail {

const BlockingClock& clock_of(const RetryCallOptions& options) {
  static const BlockingClock system;
  return options.clock ? *options.clock : system;
}

struct RetryLoop::State {
  State(const RetryPolicy& policy_, const RetryCallOptions& options_,
        std::shared_ptr<SharedBudget> shared, Time now)
      : policy(policy_),
        options(options_),
        started(now),
        deadline(later(now, options_.timeout)),
        budget(std::move(shared), now),
        progress(options_.repeatable, false) {}

  const RetryPolicy& policy;
  const RetryCallOptions& options;
  Time started;
  Time deadline;  // of the whole call
  BudgetUse budget;
  policy::Progress progress;
  History history;
  Time began{};
  Time next{};
  bool ended = false;
};

RetryLoop::~RetryLoop() = default;

RetryLoop::RetryLoop(const RetryPolicy& policy, const RetryCallOptions& options, Time now)
    : state_(std::make_unique<State>(policy, options,
                                     options.budget ? options.budget->shared_ : nullptr, now)) {
  check(policy);
  if (inside_retry()) warn_of_nested_retry();
}

std::optional<Time> RetryLoop::held_until(Time now) {
  auto& state = *state_;
  if (!state.policy.adaptive) return std::nullopt;
  const auto wait = state.budget.wait_for_rate(now);
  if (wait == Duration::zero()) return std::nullopt;
  const auto until = later(now, wait);
  if (policy::too_late(state.policy, state.started, state.deadline, until)) {
    state.budget.cancel(now);
    state.history.stop_reason = Reason::ElapsedExhausted;
    state.history.detail = policy::too_late_text(wait);
    state.ended = true;
  }
  return until;
}

bool RetryLoop::ended() const { return state_->ended; }

Trying RetryLoop::begin(Time now) {
  state_->began = now;
  state_->budget.begin_attempt();
  auto deadline = std::min(state_->deadline, later(now, state_->policy.attempt_timeout));
  // As for requests: a try that begins behind the elapsed limit, as two of its rules allow, is not
  // bounded by it.
  const auto end = later(state_->started, state_->policy.max_elapsed_time);
  const bool bounded = end > now || state_->policy.elapsed_rule == ElapsedRule::IncludeWait;
  if (bounded) deadline = std::min(deadline, end);
  return {static_cast<int>(state_->history.attempts.size()) + 1, deadline, state_->options.stop};
}

bool RetryLoop::judge(const TriedFacts& tried, Time now, WallTime wall_now) {
  auto& state = *state_;
  const auto classified = classified_as(tried);
  if (state.policy.adaptive) state.budget.heard(now, tried.cls == Class::Throttle);
  state.progress.ended(tried.cls);
  const auto& facts = state.progress.facts();
  const Clocks clocks{now, state.started, state.deadline, wall_now};
  const auto random = state.options.random ? state.options.random() : system_random();
  auto decision = decide(state.policy, classified, facts, clocks, random);
  if (decision.retry && !decision.poll && !state.budget.take(classified, now)) {
    decision = over_budget(decision, classified, facts, clocks);
  }
  if (!decision.retry) state.budget.settle(tried.cls, now);
  state.progress.decided(classified, decision);

  auto& attempt = state.history.attempts.emplace_back();
  attempt.number = static_cast<int>(state.history.attempts.size());
  attempt.start = state.began - state.started;
  attempt.duration = now - state.began;
  attempt.cls = tried.cls;
  attempt.rule = tried.reason.empty() ? std::string(to_string(tried.cls)) : tried.reason;
  attempt.budget_left = state.budget.left(now);
  policy::write_down(decision, state.policy.repeat, attempt, state.history);
  state.next = later(now, decision.wait);
  state.ended = !decision.retry;
  return decision.retry;
}

Time RetryLoop::next() const { return state_->next; }

History RetryLoop::finish(Time now) {
  if (!state_->ended) {
    state_->budget.cancel(now);
    state_->history.stop_reason = Reason::Canceled;
  }
  state_->history.elapsed = now - state_->started;
  return std::move(state_->history);
}

}  // namespace detail
}  // namespace httpretry
