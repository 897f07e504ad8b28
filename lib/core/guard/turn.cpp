// Gate::Turn: one send, from its arrival in the queue to its end.
#include "gate.hpp"

#include <algorithm>

namespace httpretry::guard {

Gate::Turn::Turn(Gate& gate, const Sender& sender, Time now)
    : gate_(gate),
      ask_(sender.ask),
      limit_(sender.limit),
      pause_limit_(sender.pause_limit),
      last_(now) {
  const std::lock_guard lock(gate_.mutex_);
  queue_ = gate_.queue_of(sender, now);
  gate_.serve(*queue_, now);
  arrive(now);
}

Gate::Turn::~Turn() {
  {
    const std::lock_guard lock(gate_.mutex_);
    if (status_ == Status::Waiting) {
      leave_queue();
      wake_head(*queue_, last_);
    }
    if (!taken_) return;
    give_back(nullptr, last_, 0);
  }
  gate_.state_->tell_changed(last_, gate_.listener_.get());
}

StateChanges Gate::Turn::take_changes() {
  const std::lock_guard lock(gate_.mutex_);
  return std::exchange(changes_, {});
}

GuardFacts Gate::Turn::facts(Time now, WallTime wall_now) const {
  auto facts = queue_->limits->facts(now, wall_now);
  const auto& breaker = queue_->policy->breaker;
  if (breaker && breaker->kind == BreakerPolicy::Kind::Share) {
    facts.circuit->refused_share = grant_.refused_share;
  }
  return facts;
}

Gate::Turn::Status Gate::Turn::status() const {
  const std::lock_guard lock(gate_.mutex_);
  return status_;
}

Hold Gate::Turn::why() const {
  const std::lock_guard lock(gate_.mutex_);
  return why_;
}

Hold Gate::Turn::find_hold(Time now) {
  ask_.now = now;
  const auto answer = queue_->limits->look(ask_);
  return {answer.held, answer.until};
}

bool Gate::Turn::enter(Time now) {
  ask_.now = now;
  grant_ = queue_->limits->enter(ask_, changes_);
  if (grant_.held != QueuedBy::Nothing) {
    // If the circuit has also changed, observers need the reason, so it stays in `changes_`.
    auto why = changes_.circuit ? changes_.why : std::exchange(changes_.why, {});
    why_ = {grant_.held, grant_.until, std::move(why)};
    const auto refused = refusal(why_, now);
    if (refused) refuse(*refused);
    return false;
  }
  leave_queue();
  ++queue_->turns;
  taken_ = true;
  status_ = Status::Granted;
  if (wake_) wake_->happen();
  return true;
}

void Gate::Turn::arrive(Time now) {
  const auto& policy = *queue_->policy;
  if (policy.rate) rate_limit_ = later(now, policy.rate->max_wait);
  if (policy.concurrency) slot_limit_ = later(now, policy.concurrency->queue.timeout);
  if (queue_->waiting.empty()) {
    if (enter(now) || status_ == Status::Refused) return;
  } else {
    why_ = find_hold(now);
    if (const auto refused = refusal(why_, now)) return refuse(*refused);
  }
  const auto waiting = queue_->limits->waiting();
  if (policy.rate && why_.by == QueuedBy::Rate) {
    // Each send that waits in front of this one takes a token.
    const auto turn = why_.until + waiting.for_rate * (policy.rate->per / policy.rate->requests);
    if (turn > std::min(limit_, rate_limit_)) return refuse({QueuedBy::Rate, turn});
  }
  if (policy.concurrency && waiting.for_slots >= policy.concurrency->queue.max) {
    return refuse({QueuedBy::Concurrency});
  }
  enter_queue();
}

std::optional<Hold> Gate::Turn::refusal(const Hold& held, Time now) const {
  const auto& policy = *queue_->policy;
  if (held.by == QueuedBy::Circuit && policy.breaker->when_open == BreakerPolicy::WhenOpen::Fail) {
    return held;
  }
  auto limit = limit_;
  if (held.by == QueuedBy::Rate) limit = std::min(limit, rate_limit_);
  if (held.by == QueuedBy::Pause) limit = std::min(limit, pause_limit_);
  if (held.until != kNever && held.until > limit) return held;
  if (now >= slot_limit_) return Hold{QueuedBy::Concurrency};
  return now >= limit ? std::optional(held) : std::nullopt;
}

void Gate::Turn::refuse(const Hold& why) {
  leave_queue();
  status_ = Status::Refused;
  why_ = why;
  if (wake_) wake_->happen();
}

void Gate::Turn::enter_queue() {
  const auto& policy = *queue_->policy;
  const auto arrival = static_cast<std::int64_t>(++gate_.arrivals_);
  const bool last_first =
      policy.concurrency && policy.concurrency->queue.order == ConcurrencyPolicy::Order::Lifo;
  rank_ = {static_cast<int>(ask_.priority), last_first ? -arrival : arrival};
  queue_->waiting.emplace(rank_, this);
  for (auto* const scope : queue_->scopes) ++scope->second.waiting;
  queue_->limits->wait(1);
}

void Gate::Turn::leave_queue() {
  if (queue_->waiting.erase(rank_) == 0) return;
  for (auto* const scope : queue_->scopes) --scope->second.waiting;
  queue_->limits->wait(-1);
}

void Gate::Turn::vote_early(const SendEnd& ended, Time now, double chance) {
  {
    const std::lock_guard lock(gate_.mutex_);
    queue_->limits->vote_early(grant_, ended, now, chance, changes_);
    if (!changes_.circuit) return;
    refuse_hopeless(*queue_, now);
    gate_.serve(*queue_, now);
  }
  gate_.state_->tell_changed(now, gate_.listener_.get());
}

void Gate::Turn::end(const SendEnd& ended, Time now, double chance) {
  {
    const std::lock_guard lock(gate_.mutex_);
    give_back(&ended, now, chance);
  }
  gate_.state_->tell_changed(now, gate_.listener_.get());
}

void Gate::Turn::give_back(const SendEnd* ended, Time now, double chance) {
  taken_ = false;
  queue_->limits->leave(grant_, ended, now, chance, changes_);
  if (changes_.circuit && changes_.circuit->to == Circuit::Open) refuse_hopeless(*queue_, now);
  gate_.serve(*queue_, now);
}

Time Gate::Turn::next_wake(Time now) {
  auto next = std::min(limit_, slot_limit_);
  if (&queue_->head() == this) next = std::min(next, find_hold(now).until);
  return next;
}

void Gate::Turn::look(Time now) {
  last_ = now;
  if (status_ != Status::Waiting) return;
  gate_.serve(*queue_, now);
  if (status_ != Status::Waiting) return;
  why_ = find_hold(now);
  if (const auto refused = refusal(why_, now)) {
    refuse(*refused);
    wake_head(*queue_, now);
  }
}

Task<bool> Gate::Turn::wait(Scheduler& scheduler, std::stop_token stop) {
  std::shared_ptr<detail::Event> wake;
  Time until;
  {
    const std::lock_guard lock(gate_.mutex_);
    if (status_ == Status::Waiting) {
      wake = wake_ = std::make_shared<detail::Event>();
      until = wakes_at_ = next_wake(scheduler.now());
    }
  }
  if (!wake) co_return true;
  const bool whole = co_await wake->wait(scheduler, until, std::move(stop));
  {
    const std::lock_guard lock(gate_.mutex_);
    wake_.reset();
    look(scheduler.now());
  }
  co_return whole;
}

}  // namespace httpretry::guard
