#include "gate.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

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
  state_->listen(listener_);  // keeps only a weak_ptr to it
}

// Waits for a listener that runs. Later ones find no gate.
Gate::~Gate() {
  const std::lock_guard lock(gate_ref_->mutex);
  gate_ref_->gate = nullptr;
}

std::size_t Gate::queues() const {
  const std::lock_guard lock(mutex_);
  return queues_.size();
}

// `queues_` is always the last owner of a queue, so this runs with the gate's mutex locked, or
// while the gate is destroyed.
Gate::SendQueue::~SendQueue() { leave_limits(); }

void Gate::SendQueue::leave_limits() {
  for (auto* const entry : limit_entries) {
    auto& [key, limit] = *entry;
    std::erase(limit.queues, this);
    // Not erase(key), because `key` refers to the entry that is erased.
    if (limit.queues.empty()) queues_of_gate->erase(queues_of_gate->find(key));
  }
  limit_entries.clear();
}

// Returns the queue in which the sends of this sender wait for their limits, and makes it if
// necessary. Senders with the same policy object, credentials, host and endpoint have the same
// limits, and share a queue.
std::shared_ptr<Gate::SendQueue> Gate::queue_of(const Sender& sender, Time now) {
  // If the breaker applies only to retries, retries have a queue of their own: a first attempt must
  // not wait behind a retry that an open circuit holds back.
  const auto& breaker = sender.policy->breaker;
  const bool needs_retry_queue =
      sender.ask.is_retry && breaker && breaker->applies_to == BreakerPolicy::AppliesTo::Retries;
  // The policy's address stands for the policy. No other policy can get this address, because the
  // queue keeps the policy alive. After a policy file was read again, its policies are new objects
  // with new queues, but these use the same limits, which have their own keys.
  auto queue_key = (needs_retry_queue ? "retries " : "") +
                   std::to_string(reinterpret_cast<std::uintptr_t>(sender.policy.get())) + " " +
                   std::to_string(sender.credentials) + " ";
  queue_key.append(sender.host).append(" ").append(sender.endpoint);
  auto queue = queues_.at(queue_key, now);  // finds or makes it
  if (!queue->limits) add_limits(*queue, sender, now);
  return queue;
}

// Gives a new queue its limits, and registers the queue with each of them in `limit_queues_`. When
// a limit changes, the gate finds there all queues whose sends may go out. If memory is short, the
// queue stays without limits, and the next send of the queue adds them.
void Gate::add_limits(SendQueue& queue, const Sender& sender, Time now) {
  const auto keys = limit_keys(sender);  // `keys.rate`: for example "rate https://api.example.com"
  // The main pause is that of the host, or of the scope that the policy names.
  const auto& [main_pause, endpoint_pause] = keys.pauses;
  auto limits = state_->limits(keys, now);
  queue.leave_limits();                   // those that a call without enough memory has added
  queue.queues_of_gate = &limit_queues_;  // for ~SendQueue, with `limit_entries`
  queue.policy = sender.policy;
  queue.has_endpoint_pause = !endpoint_pause.empty();
  // Gate::pause relies on this order: the pauses come first.
  const std::array<const std::string*, 5> all_keys{&main_pause, &endpoint_pause, &keys.breaker,
                                                   &keys.rate, &keys.slots};
  queue.limit_entries.reserve(all_keys.size());  // so that the second push_back cannot fail
  for (const auto* const key : all_keys) {
    if (key->empty()) continue;  // the policy has no such limit
    auto& entry = *limit_queues_.try_emplace(*key).first;
    auto& limit = entry.second;
    limit.queues.push_back(&queue);
    queue.limit_entries.push_back(&entry);
    const bool is_rate_with_costs = key == &keys.rate && counts_cost(*queue.policy->rate);
    if (is_rate_with_costs) queue.rate_with_costs = &limit;
  }
  queue.limits = std::move(limits);
}

// Begins a pause for the scope that the policy names, or without one, for `default_scope`, which is
// Host or Endpoint. Refuses the sends whose wait the pause makes too long. Returns the key of the
// pause, such as "https://api.example.com", without its first word, "pause".
std::string Gate::pause(const Sender& sender, GuardScope default_scope, Time until, Time now) {
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    const auto queue = queue_of(sender, now);
    // A queue has two pauses, of the host and of the endpoint, only if the policy names no scope.
    const bool endpoint_only = queue->has_endpoint_pause && default_scope == GuardScope::Endpoint;
    const std::size_t pause_index = endpoint_only ? 1 : 0;
    key = queue->limit_entries[pause_index]->first;  // the pauses come first
    queue->limits->pause(pause_index, until, now);
    refuse_hopeless(*queue, now);
  }
  state_->tell_changed(now, listener_.get());
  return std::string(without_kind(key));
}

// Returns the limit that would hold back one more send now, a hedge, which counts as a retry.
// Returns Concurrency if the limits allow it but other sends wait in its queue.
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
  for (auto& [key, limit] : limit_queues_) {
    if (limit.waiting == 0) continue;
    serve(limit, now);
    refuse_hopeless(limit, now);
  }
}

// Lets waiting sends out, or refuses them, in all queues that share one limit. Goes on until the
// limits hold back the head of each queue, which is the only send of a queue that may go out next.
// Among the heads, the one with the lowest rank (priority, then arrival) comes first.
void Gate::serve(LimitQueues& limit, Time now) {
  if (limit.waiting == 0) return;
  while (limit.waiting > 0) {
    std::vector<Turn*> heads;
    for (const auto* queue : limit.queues) {
      if (!queue->waiting.empty()) heads.push_back(&queue->head());
    }
    std::sort(heads.begin(), heads.end(),
              [](const Turn* a, const Turn* b) { return a->rank_ < b->rank_; });
    // Offers the turn to one head after another until one leaves its queue, which then has a new
    // head. `enter` takes what the send needs and returns true, or it may refuse the send.
    const bool one_has_left = std::any_of(heads.begin(), heads.end(), [&](Turn* head) {
      return head->enter(now) || head->status_ == Turn::Status::Refused;
    });
    if (!one_has_left) break;
  }
  // The new heads now wait for the limits, so their timers may have to end earlier.
  for (const auto* queue : limit.queues) wake_head(*queue, now);
}

void Gate::serve(const SendQueue& queue, Time now) {
  for (auto* const entry : queue.limit_entries) serve(entry->second, now);
}

// Wakes the head of a queue if its turn may come earlier than its timer. Only the head waits for
// the limits; the others wait for their own deadline.
void Gate::wake_head(const SendQueue& queue, Time now) {
  if (queue.waiting.empty()) return;
  auto& head = queue.head();
  if (head.wake_ && head.next_wake(now) < head.wakes_at_) head.wake_->happen();
}

void Gate::refuse_hopeless(const SendQueue& queue, Time now) {
  for (const auto* const entry : queue.limit_entries) refuse_hopeless(entry->second, now);
}

// Refuses the sends that would wait too long now that the limit has changed, for example because a
// circuit has opened. `refuse` removes a send from the queue, so it is called after the loop over
// the queue.
void Gate::refuse_hopeless(const LimitQueues& limit, Time now) {
  for (const auto* queue : limit.queues) {
    std::vector<std::pair<Turn*, Hold>> hopeless;
    for (const auto& [rank, turn] : queue->waiting) {
      const auto reason = turn->refusal(turn->find_hold(now), now);
      if (reason) hopeless.emplace_back(turn, *reason);
    }
    for (const auto& [turn, reason] : hopeless) turn->refuse(reason);
  }
  for (const auto* queue : limit.queues) wake_head(*queue, now);
}

}  // namespace httpretry::guard
