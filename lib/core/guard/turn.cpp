// Gate::Turn: one send, from its arrival in the queue to its end.
#include "gate.hpp"

#include <algorithm>
#include <new>

namespace httpretry::guard {
namespace {

// Returns whether a send that this holds back may lack only a slot. SharedState means that the send
// waits for a reply of the store that other processes share, which may be about slots.
bool may_lack_slot(QueuedBy by) {
  return by == QueuedBy::Concurrency || by == QueuedBy::SharedState;
}

}  // namespace

Gate::Turn::Turn(Gate& gate, const Sender& sender, Time now)
    : gate_(gate),
      ask_(sender.ask),
      deadline_(sender.deadline),
      pause_deadline_(sender.pause_deadline),
      latest_now_(now) {
  const std::lock_guard lock(gate_.mutex_);
  queue_ = gate_.queue_of(sender, now);
  gate_.serve(*queue_, now);
  try {
    arrive(now);
  } catch (const std::bad_alloc&) {
    // The destructor is not called, so the send gives its place and what it has taken back here.
    leave_queue();
    if (must_release_) queue_->limits->leave(grant_, /*end=*/nullptr, now, /*random=*/0, changes_);
    throw;
  }
}

// Leaves the queue, or releases what the send has taken if `end` was not called.
Gate::Turn::~Turn() {
  {
    const std::lock_guard lock(gate_.mutex_);
    if (status_ == Status::Waiting) {
      leave_queue();
      gate_.serve(*queue_, latest_now_);  // a send that has waited behind this one may go out
    } else if (must_release_) {
      release(/*ended=*/nullptr, latest_now_, /*unit_random=*/0);  // not used without an end
    } else {
      return;
    }
  }
  gate_.state_->tell_changed(latest_now_, gate_.listener_.get());
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

// Sets the time and the priority with which the limits are asked. On the turn of the lowest
// priority, the head of the queue asks with Normal, and so may take any free slot. With its own
// priority, it and all sends behind it would wait for slots that are kept for higher ones.
void Gate::Turn::prepare_ask(Time now) {
  ask_.now = now;
  ask_.priority = queue_->serves_lowest() ? Priority::Normal : static_cast<Priority>(rank_.first);
}

Hold Gate::Turn::find_hold(Time now) {
  prepare_ask(now);
  const auto answer = queue_->limits->look(ask_);
  if (answer.held != QueuedBy::Nothing) return {answer.held, answer.until};
  return held_by_order(now);
}

// Returns QueuedBy::Rate if an earlier send waits for the same rate, or may go out now, and
// otherwise QueuedBy::Nothing. Without this, cheap sends would pass an expensive one that waits for
// more tokens, so it might wait forever.
Hold Gate::Turn::held_by_order(Time now) {
  if (queue_->rate_with_costs == nullptr) return {};
  Hold hold;
  for (const auto* const queue : queue_->rate_with_costs->queues) {
    if (queue->waiting.empty()) continue;
    auto& first = queue->head();
    if (first.rank_ >= rank_) continue;  // this send itself, or one behind it
    first.prepare_ask(now);
    const auto answer = queue->limits->look(first.ask_);
    if (answer.held == QueuedBy::Rate) return {QueuedBy::Rate, answer.until};
    if (answer.held == QueuedBy::Nothing) hold = {QueuedBy::Rate, now};
  }
  return hold;
}

// Tries to let the send out. If all limits allow it, takes its place in each of them, grants the
// turn and returns true. Returns false if a limit (`why_`) holds the send back. The send then stays
// Waiting, or is refused if its wait would be in vain, for example because it would end after the
// deadline; `status_` shows which.
bool Gate::Turn::enter(Time now) {
  prepare_ask(now);
  // An earlier send that needs the same rate goes first, even if this one is cheaper.
  Hold hold = held_by_order(now);
  if (hold.by == QueuedBy::Nothing) {
    // Takes everything that the send needs, or nothing. `changes_` collects changes for observers.
    grant_ = queue_->limits->enter(ask_, changes_);
    // `grant_.held` is the limit that has refused, or Nothing if all were granted.
    hold = {grant_.held, grant_.until, std::move(grant_.why_open), grant_.refused_share > 0};
  }
  if (hold.by != QueuedBy::Nothing) {
    hold_back(std::move(hold), now);
    return false;
  }
  leave_queue();            // does nothing if the send has just arrived
  ++queue_->turns_granted;  // serves_lowest() gives every tenth turn to the lowest priority
  must_release_ = true;     // the destructor releases the limits if `end` is not called
  status_ = Status::Granted;
  if (wake_) wake_->happen();  // resumes the coroutine in `wait`
  return true;
}

// Decides about a send that has just arrived at the gate. Lets it out at once if no other send
// waits and no limit holds it back. Otherwise puts it into the queue, or refuses it if it would
// wait longer than it may or the queue is full. The decision is in `status_`.
void Gate::Turn::arrive(Time now) {
  const auto& policy = *queue_->policy;
  // `rate_deadline_` applies only to the wait for the rate, `deadline_` to every wait.
  if (policy.rate) {
    auto max_wait = policy.rate->max_wait;
    for (const auto& rate : policy.rate->further) max_wait = std::min(max_wait, rate.max_wait);
    rate_deadline_ = later(now, max_wait);
  }
  set_rank();
  if (queue_->waiting.empty()) {
    enter(now);  // sets `status_` and `why_`
  } else {
    // Other sends wait already. This one joins them below, even if no limit holds it back, unless
    // `hold_back` refuses it.
    hold_back(find_hold(now), now);
  }
  if (status_ != Status::Waiting) return;
  // `rate_allows_at` takes into account the sends that already wait. `why_.until`, which
  // `hold_back` has checked, does not.
  const auto [rate_allows_at, waiting_for_slots] = queue_->limits->waiting(ask_);
  if (why_.by == QueuedBy::Rate && rate_allows_at > std::min(deadline_, rate_deadline_)) {
    return refuse({QueuedBy::Rate, rate_allows_at});
  }
  const bool queue_is_full =
      policy.concurrency && waiting_for_slots >= policy.concurrency->queue.max;
  if (why_.by == QueuedBy::Concurrency && queue_is_full) {
    return refuse({.by = QueuedBy::Concurrency});
  }
  enter_queue();
  // While others wait, the limits may still allow this send, for example because sends of low
  // priority leave some slots free. It then goes out now if its priority makes it the head.
  if (why_.by == QueuedBy::Nothing) gate_.serve(*queue_, now);
}

// Notes the limit that holds the send back, in `why_`, and refuses the send if it must not wait for
// that limit. `queue.timeout` and a `queue.max` of 0 apply only to the wait for a slot, which
// begins when the other limits allow the send and, if slots are shared, the store has replied that
// none is free.
void Gate::Turn::hold_back(Hold hold, Time now) {
  if (const auto& concurrency = queue_->policy->concurrency) {
    const auto& queue = concurrency->queue;
    const auto max_wait = queue.max == 0 ? Duration::zero() : queue.timeout;
    if (!may_lack_slot(hold.by)) {
      slot_deadline_ = later(hold.until, max_wait);
    } else if (hold.by == QueuedBy::Concurrency && slot_deadline_ == kNever) {
      slot_deadline_ = later(now, max_wait);
    }
  }
  why_ = std::move(hold);
  if (const auto reason = refusal(why_, now)) refuse(*reason);
}

// Returns why a send that the limit `held` holds back must be refused: an open circuit does not let
// sends wait, or the wait would end after a deadline. Returns nullopt if the send may wait.
std::optional<Hold> Gate::Turn::refusal(const Hold& held, Time now) const {
  const auto& breaker = queue_->policy->breaker;
  // A breaker of kind Share refuses sends at random, so no send waits for it.
  const bool lets_none_wait = breaker && (breaker->when_open == BreakerPolicy::WhenOpen::Fail ||
                                          breaker->kind == BreakerPolicy::Kind::Share);
  if (held.by == QueuedBy::Circuit && lets_none_wait) return held;
  auto deadline = deadline_;
  if (held.by == QueuedBy::Rate) deadline = std::min(deadline, rate_deadline_);
  if (held.by == QueuedBy::Pause) deadline = std::min(deadline, pause_deadline_);
  // With SharedState, `until` is only when the send asks again. The reply may come earlier.
  const bool is_known = held.until != kNever && held.by != QueuedBy::SharedState;
  if (is_known && held.until > deadline) return held;
  if (may_lack_slot(held.by) && now >= slot_deadline_) return Hold{.by = QueuedBy::Concurrency};
  return now >= deadline ? std::optional(held) : std::nullopt;
}

void Gate::Turn::refuse(const Hold& why) {
  leave_queue();
  status_ = Status::Refused;
  why_ = why;
  if (wake_) wake_->happen();
}

// Sets the place of the send in its queue: by priority, then by arrival, the last first in LIFO
// order.
void Gate::Turn::set_rank() {
  const auto& policy = *queue_->policy;
  const auto arrival = static_cast<std::int64_t>(++gate_.arrivals_);
  const bool lifo =
      policy.concurrency && policy.concurrency->queue.order == ConcurrencyPolicy::Order::Lifo;
  rank_ = {static_cast<int>(ask_.priority), lifo ? -arrival : arrival};
}

void Gate::Turn::enter_queue() {
  queue_->waiting.emplace(rank_, this);
  for (auto* const entry : queue_->limit_entries) ++entry->second.waiting;
  queue_->limits->wait(1, ask_.cost);
}

void Gate::Turn::leave_queue() {
  if (queue_->waiting.erase(rank_) == 0) return;
  for (auto* const entry : queue_->limit_entries) --entry->second.waiting;
  queue_->limits->wait(-1, -ask_.cost);
}

// Reports to the breaker how the send will end. If that changes the breaker's state, other sends
// may go out or must be refused.
void Gate::Turn::vote_early(const SendEnd& ended, Time now, double unit_random) {
  {
    const std::lock_guard lock(gate_.mutex_);
    queue_->limits->vote_early(grant_, ended, now, unit_random, changes_);
    if (!changes_.circuit) return;
    refuse_hopeless(*queue_, now);
    gate_.serve(*queue_, now);
  }
  gate_.state_->tell_changed(now, gate_.listener_.get());
}

void Gate::Turn::end(const SendEnd& ended, Time now, double unit_random) {
  {
    const std::lock_guard lock(gate_.mutex_);
    release(&ended, now, unit_random);
  }
  gate_.state_->tell_changed(now, gate_.listener_.get());
}

// Releases everything that the send has taken, and lets waiting sends out. `ended` is nullptr if
// the end says nothing about the server.
void Gate::Turn::release(const SendEnd* ended, Time now, double unit_random) {
  must_release_ = false;
  queue_->limits->leave(grant_, ended, now, unit_random, changes_);
  if (changes_.circuit && changes_.circuit->to == Circuit::Open) refuse_hopeless(*queue_, now);
  gate_.serve(*queue_, now);
}

// Returns when `wait` must wake this send: at a deadline. Only the head of the queue may go out
// next, so it is also woken when the limit that holds it back may allow it.
Time Gate::Turn::next_wake(Time now) {
  const auto next = std::min(deadline_, slot_deadline_);
  if (&queue_->head() != this) return next;
  const auto hold = find_hold(now);
  return std::min(next, hold.by == QueuedBy::Nothing ? now : hold.until);
}

// Grants or refuses the turn if the limits have changed.
void Gate::Turn::update_status(Time now) {
  latest_now_ = now;
  if (status_ != Status::Waiting) return;
  gate_.serve(*queue_, now);
  if (status_ != Status::Waiting) return;
  hold_back(find_hold(now), now);
  if (status_ == Status::Refused) gate_.serve(*queue_, now);  // those behind it may go out
}

// Waits while the send is in the queue: until another send wakes it, a limit may let it out, or a
// deadline comes. Then updates the status, which may still be Waiting, so the caller waits again.
// Returns false if the wait was canceled.
Task<bool> Gate::Turn::wait(Scheduler& scheduler, std::stop_token stop) {
  std::shared_ptr<httpretry::detail::Event> wake;
  Time until;
  {
    const std::lock_guard lock(gate_.mutex_);
    if (status_ != Status::Waiting) co_return true;  // another thread has granted or refused it
    until = wakes_at_ = next_wake(scheduler.now());
    // `enter`, `refuse` and `wake_head` make the event happen, on any thread.
    wake = wake_ = std::make_shared<httpretry::detail::Event>();
  }
  const bool not_canceled = co_await wake->wait(scheduler, until, std::move(stop));
  const std::lock_guard lock(gate_.mutex_);
  wake_.reset();
  update_status(scheduler.now());
  co_return not_canceled;
}

}  // namespace httpretry::guard
