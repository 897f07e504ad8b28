#include "gate.hpp"

#include <algorithm>
#include <limits>

namespace httpretry::guard {

// Who waits for one state.
struct Gate::Scope {
  std::vector<Lane*> lanes;
  int waiting = 0;
};

// Sends with the same limits. Only the first in its queue may be next.
struct Gate::Lane {
  std::shared_ptr<const GuardPolicy> policy;
  std::shared_ptr<SendLimits> limits;
  std::vector<std::pair<const std::string*, Scope*>> scopes;  // each once
  bool two_pauses = false;
  std::map<Turn::Rank, Turn*> queue;
  int users = 0;  // turns that live
  int turns = 0;  // that were granted

  [[nodiscard]] Turn& head() const;
};

namespace {

std::string scope_text(GuardScope scope, const Sender& sender) {
  switch (scope) {
    case GuardScope::Host: return std::string(sender.host);
    case GuardScope::Policy: return "policy";
    case GuardScope::Endpoint:
      return std::string(sender.endpoint.empty() ? sender.host : sender.endpoint);
    case GuardScope::Credentials:
      return std::string(sender.host) + " credentials " + std::to_string(sender.credentials);
  }
  return {};
}

// A server's word is for all policies, so a pause is not told apart by where its block stands; and
// it is for no other server.
std::string pause_key(GuardScope scope, const Sender& sender) {
  if (scope == GuardScope::Policy) return "pause policy " + sender.names->pause;
  auto key = "pause " + std::string(sender.host);
  if (scope != GuardScope::Endpoint) return key;
  if (!sender.endpoint.empty()) key.append(" ").append(sender.endpoint);
  if (sender.credentials != 0) key += " credentials " + std::to_string(sender.credentials);
  return key;
}

std::string state_key(std::string_view kind, GuardScope scope, std::string_view name,
                      const Sender& sender) {
  auto key = std::string(kind) + " " + scope_text(scope, sender);
  if (!name.empty()) key.append(" ").append(name);
  return key;
}

// `sender` has names.
LimitKeys keys_of(const Sender& sender) {
  const auto& policy = *sender.policy;
  const auto& names = *sender.names;
  LimitKeys keys;
  keys.policy = sender.policy;
  if (policy.pause.enabled) {
    keys.pauses[0] = pause_key(policy.pause.scope.value_or(GuardScope::Host), sender);
    if (!policy.pause.scope) keys.pauses[1] = pause_key(GuardScope::Endpoint, sender);
    if (keys.pauses[1] == keys.pauses[0]) keys.pauses[1].clear();  // nothing tells them apart
  }
  if (policy.rate) keys.rate = state_key("rate", policy.rate->scope, names.rate, sender);
  if (policy.concurrency) {
    keys.slots = state_key("concurrency", policy.concurrency->scope, names.concurrency, sender);
  }
  if (policy.breaker) {
    keys.breaker = state_key("breaker", policy.breaker->scope, names.breaker, sender);
  }
  return keys;
}

}  // namespace

// Every tenth turn is one of the lowest priority that waits, so that it waits not for ever.
Gate::Turn& Gate::Lane::head() const {
  if (turns % 10 != 9) return *queue.begin()->second;
  const auto lowest = queue.rbegin()->first.first;
  return *queue.lower_bound({lowest, std::numeric_limits<std::int64_t>::min()})->second;
}

Gate::Gate(std::shared_ptr<SharedState> state)
    : state_(std::move(state)), link_(std::make_shared<Link>(this)) {
  listener_ = std::make_shared<const SharedState::Listener>([link = link_](Time now) {
    const std::lock_guard lock(link->mutex);
    if (link->gate != nullptr) link->gate->look_again(now);
  });
  state_->listen(listener_);
}

Gate::~Gate() {
  const std::lock_guard lock(link_->mutex);
  link_->gate = nullptr;
}

std::size_t Gate::lanes() const {
  const std::lock_guard lock(mutex_);
  return lanes_.size();
}

std::unique_ptr<Gate::Lane> Gate::make_lane(const Sender& sender, Time now) {
  auto lane = std::make_unique<Lane>();
  lane->policy = sender.policy;
  static const GuardNames unnamed;
  auto named = sender;
  if (named.names == nullptr) named.names = &unnamed;
  auto keys = keys_of(named);
  lane->two_pauses = !keys.pauses[1].empty();
  for (const auto* const key :
       {&keys.pauses[0], &keys.pauses[1], &keys.breaker, &keys.rate, &keys.slots}) {
    if (key->empty()) continue;
    const auto found = scopes_.try_emplace(*key).first;
    if (!found->second) found->second = std::make_unique<Scope>();
    found->second->lanes.push_back(lane.get());
    lane->scopes.emplace_back(&found->first, found->second.get());
  }
  lane->limits = state_->limits(std::move(keys), now);
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
  if (lanes_.size() >= room_at_) make_room();
  return *lanes_.emplace(std::move(key), make_lane(sender, now)).first->second;
}

void Gate::make_room() {
  std::erase_if(lanes_, [&](const auto& entry) {
    auto& lane = *entry.second;
    if (lane.users > 0) return false;
    for (const auto& [key, scope] : lane.scopes) {
      std::erase(scope->lanes, &lane);
      if (scope->lanes.empty()) scopes_.erase(scopes_.find(*key));
    }
    return true;
  });
  room_at_ = std::max(kMaxIdleLanes, 2 * lanes_.size());
}

std::string Gate::pause(const Sender& sender, GuardScope scope, Time until, Time now) {
  const bool chosen = sender.policy->pause.scope.has_value();
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    auto& lane = lane_of(sender, now);
    const bool second = lane.two_pauses && !chosen && scope == GuardScope::Endpoint;
    key = *lane.scopes[second ? 1 : 0].first;  // pauses are the first of them
    lane.limits->pause(second ? 1 : 0, until, now);
    for (const auto& [name, one] : lane.scopes) refuse_in_vain(*one, now);
  }
  state_->tell_changed(now, listener_.get());
  return key.substr(key.find(' ') + 1);  // without its kind
}

QueuedBy Gate::would_hold(const Sender& sender, Time now) {
  SendAsk ask;
  ask.now = now;
  ask.is_retry = true;
  const std::lock_guard lock(mutex_);
  const auto& lane = lane_of(sender, now);
  const auto by = lane.limits->look(ask).held;
  if (by != QueuedBy::Nothing || lane.queue.empty()) return by;
  return QueuedBy::Concurrency;
}

void Gate::look_again(Time now) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, scope] : scopes_) {
    if (scope->waiting == 0) continue;
    serve(*scope, now);
    refuse_in_vain(*scope, now);
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
  for (const auto& [key, scope] : lane.scopes) serve(*scope, now);
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
      if (const auto why = turn->refusal(turn->held(now), now)) refused.emplace_back(turn, *why);
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
      priority_(sender.priority),
      chance_(sender.chance),
      limit_(sender.limit),
      last_(now) {
  const std::lock_guard lock(gate_.mutex_);
  lane_ = &gate_.lane_of(sender, now);
  ++lane_->users;
  gate_.serve(*lane_, now);
  arrive(now);
}

Gate::Turn::~Turn() {
  {
    const std::lock_guard lock(gate_.mutex_);
    if (queued_) {
      leave_queue();
      wake_head(*lane_, last_);
    }
    const bool taken = taken_;
    if (taken) give_back(nullptr, last_, 0);
    --lane_->users;
    if (!taken) return;
  }
  gate_.state_->tell_changed(last_, gate_.listener_.get());
}

StateChanges Gate::Turn::take_changes() {
  const std::lock_guard lock(gate_.mutex_);
  return std::exchange(changes_, {});
}

GuardFacts Gate::Turn::facts(Time now, WallTime wall_now) const {
  auto facts = lane_->limits->facts(now, wall_now);
  const auto& breaker = lane_->policy->breaker;
  if (breaker && breaker->kind == BreakerPolicy::Kind::Share) {
    facts.circuit->refused_share = grant_.refused_share;
  }
  return facts;
}

Gate::Turn::Status Gate::Turn::status() const {
  const std::lock_guard lock(gate_.mutex_);
  return status_;
}

Wait Gate::Turn::why() const {
  const std::lock_guard lock(gate_.mutex_);
  return why_;
}

SendAsk Gate::Turn::ask(Time now) const {
  SendAsk ask;
  ask.now = now;
  ask.is_retry = is_retry_;
  ask.priority = priority_;
  ask.random = chance_;
  return ask;
}

Wait Gate::Turn::held(Time now) const {
  const auto answer = lane_->limits->look(ask(now));
  return {answer.held, answer.until, {}, answer.refused_share};
}

bool Gate::Turn::enter(Time now) {
  grant_ = lane_->limits->enter(ask(now), changes_);
  if (grant_.held != QueuedBy::Nothing) {
    why_ = {grant_.held, grant_.until, std::exchange(changes_.why, {}), grant_.refused_share};
    const auto refused = refusal(why_, now);
    if (!refused) return false;
    if (queued_) leave_queue();
    refuse(*refused);
    return false;
  }
  if (queued_) leave_queue();
  ++lane_->turns;
  taken_ = true;
  status_ = Status::Granted;
  if (wake_) wake_->happen();
  return true;
}

void Gate::Turn::arrive(Time now) {
  const auto& policy = *lane_->policy;
  if (policy.rate) rate_limit_ = later(now, policy.rate->max_wait);
  if (policy.concurrency) slot_limit_ = later(now, policy.concurrency->queue.timeout);
  if (lane_->queue.empty()) {
    if (enter(now) || status_ == Status::Refused) return;
  } else {
    why_ = held(now);
    if (const auto refused = refusal(why_, now)) return refuse(*refused);
  }
  const auto waiting = lane_->limits->waiting();
  if (policy.rate && why_.by == QueuedBy::Rate) {
    // Each of those that wait before this one takes a token.
    const auto turn = why_.until + waiting.for_rate * (policy.rate->per / policy.rate->requests);
    if (turn > std::min(limit_, rate_limit_)) return refuse({QueuedBy::Rate, turn, {}, 0});
  }
  if (policy.concurrency && waiting.for_slots >= policy.concurrency->queue.max) {
    return refuse({QueuedBy::Concurrency, kNever, {}, 0});
  }
  enter_queue();
}

std::optional<Wait> Gate::Turn::refusal(const Wait& held, Time now) const {
  const auto& policy = *lane_->policy;
  if (held.by == QueuedBy::Circuit && policy.breaker->when_open == BreakerPolicy::WhenOpen::Fail) {
    return held;
  }
  const auto limit = held.by == QueuedBy::Rate ? std::min(limit_, rate_limit_) : limit_;
  if (held.until != kNever && held.until > limit) return held;
  if (now >= slot_limit_) return Wait{QueuedBy::Concurrency, kNever, {}, 0};
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
      policy.concurrency && policy.concurrency->queue.order == ConcurrencyPolicy::Order::Lifo;
  rank_ = {static_cast<int>(priority_), last_first ? -arrival : arrival};
  lane_->queue.emplace(rank_, this);
  for (const auto& [key, scope] : lane_->scopes) ++scope->waiting;
  lane_->limits->wait(1);
  queued_ = true;
}

void Gate::Turn::leave_queue() {
  lane_->queue.erase(rank_);
  for (const auto& [key, scope] : lane_->scopes) --scope->waiting;
  lane_->limits->wait(-1);
  queued_ = false;
}

void Gate::Turn::vote_early(const SendEnd& ended, Time now, double chance) {
  {
    const std::lock_guard lock(gate_.mutex_);
    lane_->limits->vote_early(grant_, ended, now, chance, changes_);
    if (!changes_.circuit) return;
    for (const auto& [key, scope] : lane_->scopes) refuse_in_vain(*scope, now);
    gate_.serve(*lane_, now);
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
  lane_->limits->leave(grant_, ended, now, chance, changes_);
  const bool opened = changes_.circuit && changes_.circuit->to == Circuit::Open;
  for (const auto& [key, scope] : lane_->scopes) {
    if (opened) refuse_in_vain(*scope, now);
  }
  gate_.serve(*lane_, now);
}

Time Gate::Turn::next_look(Time now) const {
  auto next = std::min(limit_, slot_limit_);
  if (&lane_->head() == this) next = std::min(next, held(now).until);
  return next;
}

void Gate::Turn::look(Time now) {
  last_ = now;
  if (status_ != Status::Waiting) return;
  gate_.serve(*lane_, now);
  if (status_ != Status::Waiting) return;
  why_ = held(now);
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
