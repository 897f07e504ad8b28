#include "gate.hpp"

#include <algorithm>
#include <limits>

namespace httpretry::guard {
namespace {

bool counts_cost(const RatePolicy& rate) {
  return rate.counts == RatePolicy::Counts::Cost || std::ranges::any_of(rate.further, counts_cost);
}

}  // namespace

// Returns the send that may go out next. Every tenth turn goes to the lowest priority in the queue,
// so that none waits forever.
Gate::Turn& Gate::SendQueue::head() const {
  if (!serves_lowest()) return *waiting.begin()->second;
  const auto lowest_priority = waiting.rbegin()->first.first;
  constexpr auto kFirstArrival = std::numeric_limits<std::int64_t>::min();
  return *waiting.lower_bound({lowest_priority, kFirstArrival})->second;
}

// Other gates change the limits in `state` as well. The listener then lets waiting sends of this
// gate out. It may run, or be called by another thread, while the gate is destroyed, so it refers
// to the gate by `gate_ref_`, in which the destructor sets `gate` to nullptr.
Gate::Gate(std::shared_ptr<SharedState> state)
    : state_(std::move(state)), gate_ref_(std::make_shared<GateRef>(this)) {
  listener_ = std::make_shared<const SharedState::Listener>([gate_ref = gate_ref_](Time now) {
    const std::lock_guard lock(gate_ref->mutex);
    if (gate_ref->gate != nullptr) gate_ref->gate->serve_all(now);
  });
  state_->listen(listener_);
}

Gate::~Gate() {
  const std::lock_guard lock(gate_ref_->mutex);
  gate_ref_->gate = nullptr;
}

std::size_t Gate::queues() const {
  const std::lock_guard lock(mutex_);
  return queues_.size();
}

Gate::SendQueue::~SendQueue() {
  for (auto* const scope : scopes) {
    std::erase(scope->second.queues, this);
    if (scope->second.queues.empty()) all_scopes->erase(all_scopes->find(scope->first));
  }
}

// Returns the queue in which the sends of this sender wait for their limits, and makes it if
// necessary. Senders with the same policy object, credentials, host and endpoint have the same
// limits, and share a queue, unless a breaker applies only to retries.
std::shared_ptr<Gate::SendQueue> Gate::queue_of(const Sender& sender, Time now) {
  // A first attempt must not wait behind a retry that an open circuit holds back.
  const auto& breaker = sender.policy->breaker;
  const bool apart =
      sender.ask.is_retry && breaker && breaker->applies_to == BreakerPolicy::AppliesTo::Retries;
  // The policy's address stands for the policy. After a policy file was read again, its policies
  // are new objects with new queues, but these use the same limits, which have their own keys.
  auto queue_key = (apart ? "retries " : "") +
                   std::to_string(reinterpret_cast<std::uintptr_t>(sender.policy.get())) + " " +
                   std::to_string(sender.credentials) + " ";
  queue_key.append(sender.host).append(" ").append(sender.endpoint);
  auto queue = queues_.at(queue_key, now);  // finds or makes it
  if (queue->limits) return queue;          // only a new queue has none
  const auto keys = limit_keys(sender);     // for example "rate https://api.example.com"
  queue->limits = state_->limits(keys, now);
  queue->all_scopes = &scopes_;
  queue->policy = sender.policy;
  queue->two_pauses = !keys.pauses[1].empty();  // one of the host, and one of the endpoint
  // Adds the queue to the queues of each of its limits: when a limit changes, their sends may go
  // out. The pauses come first, because `pause` looks for them there.
  for (const auto* const state_key :
       {&keys.pauses[0], &keys.pauses[1], &keys.breaker, &keys.rate, &keys.slots}) {
    if (state_key->empty()) continue;  // the policy has no such limit
    auto& key_and_scope = *scopes_.try_emplace(*state_key).first;
    key_and_scope.second.queues.push_back(queue.get());
    queue->scopes.push_back(&key_and_scope);
    const auto& rate = sender.policy->rate;
    if (state_key == &keys.rate && counts_cost(*rate)) {
      queue->rate_with_costs = &key_and_scope.second;
    }
  }
  return queue;
}

// Begins a pause for the policy's scope, or if it names none, for the host or the endpoint
// (`scope`). Refuses the sends whose wait the pause makes too long. Returns the key of the pause,
// such as "https://api.example.com", without its first word, "pause".
std::string Gate::pause(const Sender& sender, GuardScope scope, Time until, Time now) {
  const bool policy_has_scope = sender.policy->pause.scope.has_value();
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    const auto queue = queue_of(sender, now);
    // If there are two pauses, the first is that of the host and the second that of the endpoint.
    const std::size_t pause_index =
        queue->two_pauses && !policy_has_scope && scope == GuardScope::Endpoint ? 1 : 0;
    key = queue->scopes[pause_index]->first;  // the pauses come first in `scopes`
    queue->limits->pause(pause_index, until, now);
    refuse_hopeless(*queue, now);
  }
  state_->tell_changed(now, listener_.get());
  return std::string(without_kind(key));
}

// Returns the limit that would hold back one more send now, a hedge, which counts as a retry. Other
// sends that wait hold it back, too.
QueuedBy Gate::would_hold(const Sender& sender, Time now) {
  SendAsk ask;
  ask.now = now;
  ask.is_retry = true;
  ask.cost = sender.ask.cost;
  const std::lock_guard lock(mutex_);
  const auto queue = queue_of(sender, now);
  const auto held_by = queue->limits->look(ask).held;
  if (held_by != QueuedBy::Nothing || queue->waiting.empty()) return held_by;
  return QueuedBy::Concurrency;
}

void Gate::serve_all(Time now) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, scope] : scopes_) {
    if (scope.waiting == 0) continue;
    serve(scope, now);
    refuse_hopeless(scope, now);
  }
}

// Lets waiting sends out, or refuses them, in all queues that share one limit (the scope). Goes on
// until the limits hold back the head of each queue, which is the only send of a queue that may go
// out next. Among the heads, the one with the lowest rank (priority, then arrival) comes first.
void Gate::serve(Scope& scope, Time now) {
  if (scope.waiting == 0) return;
  while (scope.waiting > 0) {
    std::vector<Turn*> heads;
    for (const auto* queue : scope.queues) {
      if (!queue->waiting.empty()) heads.push_back(&queue->head());
    }
    std::sort(heads.begin(), heads.end(),
              [](const Turn* a, const Turn* b) { return a->rank_ < b->rank_; });
    // Offers the turn to one head after another until one leaves its queue, which has a new head
    // then. `enter` takes what the send needs and returns true, or it may refuse the send.
    const auto served = std::find_if(heads.begin(), heads.end(), [&](Turn* head) {
      return head->enter(now) || head->status_ == Turn::Status::Refused;
    });
    if (served == heads.end()) break;
  }
  // The new heads now wait for the limits, so their timers may have to end earlier.
  for (const auto* queue : scope.queues) wake_head(*queue, now);
}

void Gate::serve(const SendQueue& queue, Time now) {
  for (auto* const scope : queue.scopes) serve(scope->second, now);
}

// Wakes the head of a queue if its turn may come earlier than its timer. Only the head waits for
// the limits; the others wait for their own deadline.
void Gate::wake_head(const SendQueue& queue, Time now) {
  if (queue.waiting.empty()) return;
  auto& head = queue.head();
  if (head.wake_ && head.next_wake(now) < head.wakes_at_) head.wake_->happen();
}

void Gate::refuse_hopeless(const SendQueue& queue, Time now) {
  for (const auto* const scope : queue.scopes) refuse_hopeless(scope->second, now);
}

// Refuses the sends of the scope that would wait too long, because a limit has closed. `refuse`
// removes a send from the queue, so it is called after the loop over the queue.
void Gate::refuse_hopeless(const Scope& scope, Time now) {
  for (const auto* queue : scope.queues) {
    std::vector<std::pair<Turn*, Hold>> hopeless;
    for (const auto& [rank, turn] : queue->waiting) {
      const auto reason = turn->refusal(turn->find_hold(now), now);
      if (reason) hopeless.emplace_back(turn, *reason);
    }
    for (const auto& [turn, reason] : hopeless) turn->refuse(reason);
  }
  for (const auto* queue : scope.queues) wake_head(*queue, now);
}

}  // namespace httpretry::guard
