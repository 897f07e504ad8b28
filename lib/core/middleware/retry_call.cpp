#include <httpretry/middleware/retry_call.hpp>

#include "lib/core/base/random.hpp"
#include "lib/core/chain/nested_retry.hpp"
#include "lib/core/guard/detail/shared_budget.hpp"
#include "lib/core/retry/retry_loop.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace httpretry {
namespace {

Classified classified_as(const AttemptResultBase& result) {
  Classified classified;
  classified.cls = result.cls;
  classified.refused = result.cls == Class::Throttle;
  if (result.delay && result.cls != Class::Success) {
    classified.server_delay.emplace(std::max(*result.delay, Duration::zero()),
                                    ServerDelaySource::Function, "");
  }
  return classified;
}

RetryLoop::Options loop_options(const RetryCallOptions& call, Time now) {
  return {.call_started = now,
          .started = now,
          .deadline = later(now, call.timeout),
          .repeatable = call.repeatable};
}

}  // namespace

AttemptResultBase::AttemptResultBase(Class outcome, std::string why)
    : cls(outcome), reason(std::move(why)) {}

AttemptInfo::AttemptInfo(int count, Time end, std::stop_token token)
    : number(count), deadline(end), stop(std::move(token)) {}

CallBudget::CallBudget(const BudgetPolicy& policy)
    : shared_(std::make_shared<SharedBudget>(policy, Time())) {
  check(policy);
}
std::optional<std::int64_t> CallBudget::left(Time now) const { return shared_->left(now); }

BlockingClock::~BlockingClock() = default;
Time BlockingClock::now() const { return std::chrono::steady_clock::now(); }
WallTime BlockingClock::wall_now() const { return std::chrono::system_clock::now(); }

bool BlockingClock::wait_until(Time when, const std::stop_token& stop) const {
  std::mutex mutex;
  std::condition_variable_any never_notified;
  std::unique_lock lock(mutex);
  never_notified.wait_until(lock, stop, when, [] { return false; });
  return !stop.stop_requested();
}

struct RetryCallLoop::State {
  State(const RetryPolicy& policy, const RetryCallOptions& options_,
        std::shared_ptr<RetryAccount> account, Time now)
      : options(options_),
        started(now),
        loop(policy, std::move(account), history, loop_options(options_, now)) {}

  const RetryCallOptions& options;
  const Time started;
  History history;
  RetryLoop loop;
  RetryStep next;
};

RetryCallLoop::RetryCallLoop(const RetryPolicy& policy, const RetryCallOptions& options, Time now)
    : state_(std::make_unique<State>(policy, options,
                                     options.budget ? options.budget->shared_ : nullptr, now)) {
  check(policy);
  if (inside_retry()) warn_of_nested_retry();
  end_wait(/*complete=*/true, now);  // the first attempt needs no wait
}

RetryCallLoop::~RetryCallLoop() = default;

bool RetryCallLoop::ended() const { return state_->next.kind == RetryStep::Kind::Stop; }

std::optional<Time> RetryCallLoop::wait_until() const {
  const auto& next = state_->next;
  return next.kind == RetryStep::Kind::Wait ? std::optional(next.until) : std::nullopt;
}

AttemptInfo RetryCallLoop::attempt() const {
  const auto& next = state_->next;
  const auto& options = state_->options;
  const auto call_end = std::min(later(state_->started, options.timeout), next.respond_by);
  AttemptInfo info(next.number, std::min(call_end, next.until), options.stop);
  info.call_deadline = call_end;
  return info;
}

void RetryCallLoop::end_wait(bool complete, Time now) {
  if (complete && !state_->options.stop.stop_requested()) {
    state_->next = state_->loop.begin(now);
  } else {
    state_->loop.cancel(now);
    state_->next = RetryStep();
  }
}

void RetryCallLoop::end_attempt(const AttemptResultBase& result, Time now, WallTime wall_now) {
  const auto& random = state_->options.random;
  const EndedAttempt ended{
      .now = now, .wall_now = wall_now, .random = random ? random() : random_number()};
  auto reason = result.reason.empty() ? std::string(to_string(result.cls)) : result.reason;
  state_->next = state_->loop.end(ended, classified_as(result), std::move(reason));
}

History RetryCallLoop::finish(Time now) {
  state_->history.elapsed = now - state_->started;
  return std::move(state_->history);
}

// Retries a function, `attempt`, according to a policy: calls it until it succeeds, or until the
// policy allows no further attempt. Blocks during the waits in between. Returns the history of the
// attempts with the reason why they ended. The caller of this function keeps the result of the last
// attempt, which may be of any type.
History detail::retry_call(
    const RetryPolicy& policy, const RetryCallOptions& options,
    const std::function<const AttemptResultBase&(const AttemptInfo&)>& attempt) {
  static const BlockingClock system_clock;
  const auto& clock = options.clock ? *options.clock : system_clock;
  const auto make_attempt = [&](const AttemptInfo& info) -> const AttemptResultBase& {
    // Marks this thread, so that a retry inside the function, which would multiply the attempts,
    // causes a warning.
    const InsideRetry marks_this_thread;
    return attempt(info);
  };
  RetryCallLoop loop(policy, options, clock.now());
  while (!loop.ended()) {
    if (const auto until = loop.wait_until()) {
      const bool complete = clock.wait_until(*until, options.stop);  // false if stopped
      loop.end_wait(complete, clock.now());  // begins the next attempt, or ends the loop if stopped
    } else {
      auto info = loop.attempt();
      info.clock = &clock;
      const auto& result = make_attempt(info);
      loop.end_attempt(result, clock.now(), clock.wall_now());
    }
  }
  return loop.finish(clock.now());  // the history, with the elapsed time
}

}  // namespace httpretry
