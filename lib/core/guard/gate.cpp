#include "gate.hpp"

#include <algorithm>
#include <limits>

namespace httpretry::guard {

// Every tenth turn is one of the lowest priority that waits, so that none waits for ever.
Gate::Turn& Gate::Lane::head() const {
  if (turns % 10 != 9) return *queue.begin()->second;
  const auto lowest = queue.rbegin()->first.first;
  return *queue.lower_bound({lowest, std::numeric_limits<std::int64_t>::min()})->second;
}

Gate::Gate(std::shared_ptr<SharedState> state)
    : state_(std::move(state)), hearing_(std::make_shared<Hearing>(this)) {
  listener_ = std::make_shared<const SharedState::Listener>([hearing = hearing_](Time now) {
    const std::lock_guard lock(hearing->mutex);
    if (hearing->gate != nullptr) hearing->gate->look_again(now);
  });
  state_->listen(listener_);
}

Gate::~Gate() {
  const std::lock_guard lock(hearing_->mutex);
  hearing_->gate = nullptr;
}

std::size_t Gate::lanes() const {
  const std::lock_guard lock(mutex_);
  return lanes_.size();
}

Gate::Lane::~Lane() {
  for (auto* const scope : scopes) {
    std::erase(scope->second.lanes, this);
    if (scope->second.lanes.empty()) all_scopes->erase(all_scopes->find(scope->first));
  }
}

// A lane for each policy, credentials, host and endpoint. A new version of a policy file has lanes
// of its own, with the same states.
std::shared_ptr<Gate::Lane> Gate::lane_of(const Sender& sender, Time now) {
  auto key = std::to_string(reinterpret_cast<std::uintptr_t>(sender.policy.get())) + " " +
             std::to_string(sender.credentials) + " ";
  key.append(sender.host).append(" ").append(sender.endpoint);
  auto lane = lanes_.at(key, now);
  if (lane->limits) return lane;
  const auto keys = limit_keys(sender);
  lane->limits = state_->limits(keys, now);
  lane->all_scopes = &scopes_;
  lane->policy = sender.policy;
  lane->two_pauses = !keys.pauses[1].empty();
  for (const auto* const state :
       {&keys.pauses[0], &keys.pauses[1], &keys.breaker, &keys.rate, &keys.slots}) {
    if (state->empty()) continue;
    auto& scope = *scopes_.try_emplace(*state).first;
    scope.second.lanes.push_back(lane.get());
    lane->scopes.push_back(&scope);
  }
  return lane;
}

std::string Gate::pause(const Sender& sender, GuardScope scope, Time until, Time now) {
  const bool chosen = sender.policy->pause.scope.has_value();
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    const auto lane = lane_of(sender, now);
    const bool second = lane->two_pauses && !chosen && scope == GuardScope::Endpoint;
    key = lane->scopes[second ? 1 : 0]->first;  // pauses are the first of them
    lane->limits->pause(second ? 1 : 0, until, now);
    refuse_in_vain(*lane, now);
  }
  state_->tell_changed(now, listener_.get());
  return std::string(without_kind(key));
}

QueuedBy Gate::would_hold(const Sender& sender, Time now) {
  SendAsk ask;
  ask.now = now;
  ask.is_retry = true;
  const std::lock_guard lock(mutex_);
  const auto lane = lane_of(sender, now);
  const auto by = lane->limits->look(ask).held;
  if (by != QueuedBy::Nothing || lane->queue.empty()) return by;
  return QueuedBy::Concurrency;
}

void Gate::look_again(Time now) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, scope] : scopes_) {
    if (scope.waiting == 0) continue;
    serve(scope, now);
    refuse_in_vain(scope, now);
  }
}

// Grants the turns that can be taken, the earliest first.
void Gate::serve(Scope& scope, Time now) {
  if (scope.waiting == 0) return;
  while (scope.waiting > 0) {
    std::vector<Turn*> heads;
    for (const auto* lane : scope.lanes) {
      if (!lane->queue.empty()) heads.push_back(&lane->head());
    }
    std::sort(heads.begin(), heads.end(),
              [](const Turn* a, const Turn* b) { return a->rank_ < b->rank_; });
    const auto served = std::find_if(heads.begin(), heads.end(), [&](Turn* head) {
      return head->enter(now) || head->status_ == Turn::Status::Refused;
    });
    if (served == heads.end()) break;
  }
  for (const auto* lane : scope.lanes) wake_head(*lane, now);
}

void Gate::serve(const Lane& lane, Time now) {
  for (auto* const scope : lane.scopes) serve(scope->second, now);
}

// Only the first of a queue has a timer for the time at which its turn may come.
void Gate::wake_head(const Lane& lane, Time now) {
  if (lane.queue.empty()) return;
  auto& head = lane.head();
  if (head.wake_ && head.next_look(now) < head.looks_at_) head.wake_->happen();
}

void Gate::refuse_in_vain(const Lane& lane, Time now) {
  for (const auto* const scope : lane.scopes) refuse_in_vain(scope->second, now);
}

void Gate::refuse_in_vain(const Scope& scope, Time now) {
  for (const auto* lane : scope.lanes) {
    std::vector<std::pair<Turn*, Hold>> refused;
    for (const auto& [rank, turn] : lane->queue) {
      if (const auto why = turn->refusal(turn->held(now), now)) refused.emplace_back(turn, *why);
    }
    for (const auto& [turn, why] : refused) turn->refuse(why);
    wake_head(*lane, now);
  }
}

}  // namespace httpretry::guard
