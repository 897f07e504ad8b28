#include "gate_sharing.hpp"

#include <algorithm>
#include <limits>

namespace httpretry::guard {

namespace {

std::string key_of(GuardScope scope, const Sender& sender) {
  switch (scope) {
    case GuardScope::Host: return std::string(sender.host);
    case GuardScope::Policy: return "policy";
    case GuardScope::Endpoint:
      return std::string(sender.endpoint.empty() ? sender.host : sender.endpoint);
    case GuardScope::Credentials:
      return std::string(sender.host) + " " + std::to_string(sender.credentials);
  }
  return {};
}

std::string pause_key(GuardScope scope, const Sender& sender) {
  auto key = "pause " + key_of(scope, sender);
  if (scope == GuardScope::Endpoint) key += " " + std::to_string(sender.credentials);
  if (scope == GuardScope::Policy) key += " " + std::string(sender.name);
  return key;
}

std::string state_key(GuardScope scope, const Sender& sender) {
  return key_of(scope, sender) + "\n" + std::string(sender.name);
}

}  // namespace

// Every tenth turn is one of the lowest priority that waits, so that it waits not for ever.
Gate::Turn& Gate::Lane::head() const {
  if (turns % 10 != 9) return *queue.begin()->second;
  const auto lowest = queue.rbegin()->first.first;
  return *queue.lower_bound({lowest, std::numeric_limits<std::int64_t>::min()})->second;
}

Gate::Gate(std::shared_ptr<SharedState> shared) : shared_(std::move(shared)) {
  if (!shared_) return;
  sharing_ = std::make_shared<Sharing>(*this, *shared_);
  sharing_->state().listen(sharing_);
}

Gate::~Gate() {
  if (sharing_) sharing_->close();
}

std::size_t Gate::scopes() const {
  const std::lock_guard lock(mutex_);
  return scopes_.size();
}

Gate::Scope& Gate::scope_of(std::string key) {
  auto& scope = scopes_[key];
  if (scope) return *scope;
  scope = std::make_unique<Scope>();
  scope->key = std::move(key);
  return *scope;
}

std::unique_ptr<Gate::Lane> Gate::make_lane(const Sender& sender) {
  auto lane = std::make_unique<Lane>();
  lane->policy = sender.policy;
  const auto use = [&](Scope*& member, std::string key) {
    member = &scope_of(std::move(key));
    auto& scopes = lane->scopes;
    if (std::find(scopes.begin(), scopes.end(), member) != scopes.end()) return;
    scopes.push_back(member);
    member->lanes.push_back(lane.get());
  };
  const auto& policy = *sender.policy;
  if (policy.pause.enabled) {
    use(lane->pauses[0], pause_key(policy.pause.scope.value_or(GuardScope::Host), sender));
    if (!policy.pause.scope) use(lane->pauses[1], pause_key(GuardScope::Endpoint, sender));
  }
  if (policy.breaker) {
    use(lane->breaker, state_key(policy.breaker->scope, sender));
    if (!lane->breaker->breaker) lane->breaker->breaker = std::make_unique<Breaker>();
  }
  if (policy.rate) use(lane->rate, state_key(policy.rate->scope, sender));
  if (policy.concurrency) use(lane->slots, state_key(policy.concurrency->scope, sender));
  for (auto* scope : {lane->rate, lane->slots, lane->breaker}) {
    if (!sharing_ || scope == nullptr || scope->shared) continue;
    scope->shared = std::make_unique<SharedScope>(sharing_->state());
  }
  return lane;
}

Gate::Lane& Gate::lane_of(const Sender& sender, Time now) {
  std::string key(sender.host);
  key.append("\n").append(sender.endpoint);
  // A new version of a policy file has a lane of its own, with the same states.
  for (const auto number :
       {static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(sender.policy.get())),
        sender.credentials}) {
    key.append("\n").append(std::to_string(number));
  }
  if (const auto found = lanes_.find(key); found != lanes_.end()) return *found->second;
  if (std::max(lanes_.size(), scopes_.size()) >= kMaxScopes) make_room(now);
  return *lanes_.emplace(std::move(key), make_lane(sender)).first->second;
}

void Gate::make_room(Time now) {
  std::erase_if(lanes_, [&](const auto& entry) {
    auto& lane = *entry.second;
    if (!lane.queue.empty() || lane.under_way > 0) return false;
    for (auto* scope : lane.scopes) std::erase(scope->lanes, &lane);
    return true;
  });
  const auto drop = [&](bool also_changed) {
    std::erase_if(scopes_, [&](const auto& entry) {
      const auto& scope = *entry.second;
      return scope.lanes.empty() && (also_changed || scope.idle(now)) && !scope.paused;
    });
  };
  drop(false);
  if (scopes_.size() > kMaxScopes / 2) drop(true);
}

void Gate::pause(const Sender& sender, GuardScope scope, Time until, Time now) {
  const std::lock_guard lock(mutex_);
  auto& paused = scope_of(pause_key(scope, sender));
  if (sharing_) sharing_->pause(paused, until - now);
  pause(paused, until, now);
}

void Gate::pause(Scope& paused, Time until, Time now) {
  paused.pause.begin(until);
  if (!paused.paused) {
    paused.paused = true;
    paused_.push_back(&paused);
    pauses_.store(static_cast<int>(paused_.size()), std::memory_order_relaxed);
  }
  refuse_in_vain(paused, now);
}

// Where nothing waits any more, a pause that is over leaves nothing behind.
void Gate::end_pauses(Time now) {
  std::erase_if(paused_, [&](Scope* scope) {
    if (now < scope->pause.until() || scope->waiting > 0 || scope->under_way > 0) return false;
    scope->pause.end_ramp();
    scope->paused = false;
    return true;
  });
  pauses_.store(static_cast<int>(paused_.size()), std::memory_order_relaxed);
}

Wait Gate::held(const Lane& lane, const Turn& turn, Time now) {
  const auto& policy = *lane.policy;
  for (const auto* scope : lane.pauses) {
    if (scope == nullptr || !scope->paused || scope->pause.allows(policy.pause, now)) continue;
    return {now < scope->pause.until() ? Held::Pause : Held::Ramp, scope->pause.next_change(now)};
  }
  if (lane.asks_breaker(turn.is_retry_) && !policy.breaker->dry_run) {
    const auto wait = held_by_circuit(lane, now);
    if (wait.by != Held::Nothing) return wait;
  }
  if (lane.rate != nullptr) {
    const auto wait = held_by_rate(lane, now);
    if (wait.by != Held::Nothing) return wait;
  }
  if (lane.slots != nullptr) return held_by_slots(lane, now);
  return {};
}

// Grants the turns that can be taken, the earliest first.
void Gate::serve(Scope& scope, Time now) {
  if (scope.waiting == 0) return;
  while (scope.waiting > 0) {
    Turn* first = nullptr;
    for (const auto* lane : scope.lanes) {
      if (lane->queue.empty()) continue;
      auto& head = lane->head();
      const bool free = held(*lane, head, now).by == Held::Nothing;
      if (free && (first == nullptr || head.rank_ < first->rank_)) first = &head;
    }
    if (first == nullptr) break;
    first->leave_queue();
    first->take(now);
  }
  for (const auto* lane : scope.lanes) wake_head(*lane, now);
}

void Gate::serve(const Lane& lane, Time now) {
  for (auto* scope : lane.scopes) serve(*scope, now);
  if (sharing_) sharing_->ask(lane, now);
}

// Only the first of a queue has a timer for the time at which its turn may come.
void Gate::wake_head(const Lane& lane, Time now) {
  if (lane.queue.empty()) return;
  const auto& head = lane.head();
  if (head.wake_ && head.next_look(now) < head.looks_at_) head.wake_->happen();
}

void Gate::refuse_in_vain(const Scope& scope, Time now) {
  for (const auto* lane : scope.lanes) {
    std::vector<std::pair<Turn*, Wait>> refused;
    for (const auto& [rank, turn] : lane->queue) {
      if (const auto why = turn->refusal(held(*lane, *turn, now), now)) {
        refused.emplace_back(turn, *why);
      }
    }
    for (const auto& [turn, why] : refused) {
      turn->leave_queue();
      turn->refuse(why);
    }
    wake_head(*lane, now);
  }
}

// --- Turn ---

Gate::Turn::Turn(Gate& gate, const Sender& sender, Time now)
    : gate_(gate),
      is_retry_(sender.is_retry),
      chance_(sender.chance),
      limit_(sender.limit),
      last_(now) {
  const std::lock_guard lock(gate_.mutex_);
  if (!gate_.paused_.empty()) gate_.end_pauses(now);
  lane_ = &gate_.lane_of(sender, now);
  gate_.serve(*lane_, now);
  arrive(now);
  if (gate_.sharing_) gate_.sharing_->ask(*lane_, now);
}

Gate::Turn::~Turn() {
  const std::lock_guard lock(gate_.mutex_);
  if (queued_) {
    leave_queue();
    wake_head(*lane_, last_);
  }
  if (taken_) give_back(nullptr, last_, 0);
}

Gate::Turn::Status Gate::Turn::status() const {
  const std::lock_guard lock(gate_.mutex_);
  return status_;
}

Wait Gate::Turn::why() const {
  const std::lock_guard lock(gate_.mutex_);
  return why_;
}

void Gate::Turn::arrive(Time now) {
  const auto& policy = *lane_->policy;
  why_ = held(*lane_, *this, now);
  if (why_.by == Held::Nothing && lane_->queue.empty()) return take(now);
  if (policy.rate) rate_limit_ = later(now, policy.rate->max_wait);
  if (policy.concurrency) slot_limit_ = later(now, policy.concurrency->queue_timeout);
  if (const auto refused = refusal(why_, now)) return refuse(*refused);
  const auto rated = lane_->rate == nullptr ? Wait() : held_by_rate(*lane_, now);
  if (lane_->rate != nullptr && !rated.asked) {
    // Each of those that wait before this one takes a token.
    const auto turn = std::max(rated.by == Held::Nothing ? now : rated.until, now) +
                      lane_->rate->waiting * (policy.rate->per / policy.rate->requests);
    if (turn > std::min(limit_, rate_limit_)) return refuse({Held::Rate, turn});
  }
  if (lane_->slots != nullptr && lane_->slots->waiting >= policy.concurrency->queue_max) {
    return refuse({Held::Slots, kNever});
  }
  enter_queue();
}

std::optional<Wait> Gate::Turn::refusal(const Wait& held, Time now) const {
  const auto& policy = *lane_->policy;
  // It is decided by the reply, which comes within milliseconds.
  if (held.asked) return now >= limit_ ? std::optional(held) : std::nullopt;
  if (held.by == Held::Circuit && policy.breaker->when_open == BreakerPolicy::WhenOpen::Fail) {
    return held;
  }
  const auto limit = held.by == Held::Rate ? std::min(limit_, rate_limit_) : limit_;
  if (held.until != kNever && held.until > limit) return held;
  if (now >= slot_limit_) return Wait{Held::Slots, kNever};
  return now >= limit ? std::optional(held) : std::nullopt;
}

void Gate::Turn::refuse(const Wait& why) {
  status_ = Status::Refused;
  why_ = why;
  if (wake_) wake_->happen();
}

void Gate::Turn::enter_queue() {
  const auto& policy = *lane_->policy;
  const auto arrival = static_cast<std::int64_t>(++gate_.arrivals_);
  const bool last_first =
      policy.concurrency && policy.concurrency->order == ConcurrencyPolicy::Order::Lifo;
  rank_ = {static_cast<int>(policy.priority), last_first ? -arrival : arrival};
  lane_->queue.emplace(rank_, this);
  for (auto* scope : lane_->scopes) ++scope->waiting;
  queued_ = true;
}

void Gate::Turn::leave_queue() {
  lane_->queue.erase(rank_);
  for (auto* scope : lane_->scopes) --scope->waiting;
  queued_ = false;
}

void Gate::Turn::take(Time now) {
  const auto& policy = *lane_->policy;
  if (lane_->asks_breaker(is_retry_) && shares_circuit(*lane_)) {
    ticket_ = lane_->breaker->shared->circuit.take();
  } else if (lane_->asks_breaker(is_retry_)) {
    const auto answer = lane_->breaker->breaker->ask(*policy.breaker, now, chance_);
    if (!answer.allowed && !policy.breaker->dry_run) return refuse({Held::Circuit, kNever});
    if (answer.allowed) ticket_ = answer.ticket;
  }
  for (std::size_t index = 0; index < ramps_.size(); ++index) {
    auto* scope = lane_->pauses[index];
    if (scope != nullptr && scope->paused) ramps_[index] = scope->pause.enter(policy.pause, now);
  }
  if (lane_->rate != nullptr) take_token(*lane_, now);
  if (lane_->slots != nullptr) lane_->slots->slots.take();
  ++lane_->under_way;
  ++lane_->turns;
  for (auto* scope : lane_->scopes) ++scope->under_way;
  taken_ = true;
  status_ = Status::Granted;
  if (wake_) wake_->happen();
}

void Gate::Turn::end(const Ended& ended, Time now, double chance) {
  const std::lock_guard lock(gate_.mutex_);
  give_back(&ended, now, chance);
}

void Gate::Turn::give_back(const Ended* ended, Time now, double chance) {
  const auto& policy = *lane_->policy;
  const bool counts = ended != nullptr && ended->counts;
  taken_ = false;
  --lane_->under_way;
  for (auto* scope : lane_->scopes) --scope->under_way;
  for (std::size_t index = 0; index < ramps_.size(); ++index) {
    if (ramps_[index] == 0) continue;
    lane_->pauses[index]->pause.leave(ramps_[index], counts && ended->responded);
  }
  if (lane_->slots != nullptr) {
    lane_->slots->slots.give_back();
    if (counts) lane_->slots->slots.learn(*policy.concurrency, ended->dropped, now);
    if (gate_.sharing_) gate_.sharing_->slot_freed(*lane_->slots, *policy.concurrency);
  }
  if (ticket_ && shares_circuit(*lane_)) {
    auto& circuit = lane_->breaker->shared->circuit;
    if (!counts) circuit.give_back(*ticket_);
    if (counts) gate_.sharing_->vote(*lane_->breaker, *policy.breaker, *ticket_, *ended, chance);
  } else if (ticket_) {
    auto& breaker = *lane_->breaker->breaker;
    if (counts) {
      const Vote vote{ended->failed, ended->took, ended->server_delay};
      breaker.vote(*policy.breaker, *ticket_, vote, now, chance);
    } else {
      breaker.give_back(*ticket_);
    }
    if (breaker.state() == Circuit::Open) refuse_in_vain(*lane_->breaker, now);
  }
  gate_.serve(*lane_, now);
}

Time Gate::Turn::next_look(Time now) const {
  auto next = std::min(limit_, slot_limit_);
  if (&lane_->head() == this) next = std::min(next, held(*lane_, *this, now).until);
  return next;
}

void Gate::Turn::look(Time now) {
  last_ = now;
  if (status_ != Status::Waiting) return;
  gate_.serve(*lane_, now);
  if (status_ != Status::Waiting) return;
  why_ = held(*lane_, *this, now);
  if (const auto refused = refusal(why_, now)) {
    leave_queue();
    refuse(*refused);
    wake_head(*lane_, now);
  }
}

Task<bool> Gate::Turn::wait(Scheduler& scheduler, std::stop_token stop) {
  std::shared_ptr<Wake> wake;
  Time until;
  {
    const std::lock_guard lock(gate_.mutex_);
    if (status_ == Status::Waiting) {
      wake = wake_ = std::make_shared<Wake>();
      until = looks_at_ = next_look(scheduler.now());
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
