#include "sender.hpp"

#include "lib/extras/fleet/link.hpp"

#include <algorithm>
#include <utility>

using namespace httpretry;
using fleet::now_is;

namespace {

LimitKeys keys_of(GuardPolicy policy, const std::string& scope) {
  LimitKeys keys;
  if (policy.pause.enabled) keys.pauses[0] = "pause " + scope;
  if (policy.rate) keys.rate = "rate " + scope;
  if (policy.concurrency) keys.slots = "concurrency " + scope;
  if (policy.breaker) keys.breaker = "breaker " + scope;
  keys.policy = std::make_shared<const GuardPolicy>(std::move(policy));
  return keys;
}

}  // namespace

Sender::Sender(std::shared_ptr<SharedState> state, GuardPolicy policy, const std::string& scope)
    : state_(std::move(state)),
      listener_(std::make_shared<const SharedState::Listener>([this](Time) {
        const std::lock_guard lock(mutex_);
        ++told_;
        changed_.notify_all();
      })),
      limits_(state_->limits(keys_of(std::move(policy), scope), now_is())) {
  state_->listen(listener_);
}

Sender::Sent Sender::begin(Duration limit, std::int64_t cost) {
  const auto until = now_is() + limit;
  bool waits = false;
  Sent sent;
  for (;;) {
    std::uint64_t told = 0;
    {
      const std::lock_guard lock(mutex_);
      told = told_;
    }
    SendAsk ask;
    ask.now = now_is();
    ask.random = 0.5;
    ask.cost = cost;
    StateChanges changes;
    sent.grant = limits_->enter(ask, changes);
    sent.when = ask.now;
    note(changes);
    const bool over = sent.grant.held == QueuedBy::Nothing ||
                      sent.grant.held == QueuedBy::Circuit || ask.now >= until;
    if (over) break;
    if (!std::exchange(waits, true)) limits_->wait(1, cost);
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, std::min(sent.grant.until, until), [&] { return told_ != told; });
  }
  if (waits) limits_->wait(-1, -cost);
  return sent;
}

void Sender::end(const Sent& sent, bool failed) {
  SendEnd end;
  end.failed = failed;
  end.responded = true;
  StateChanges changes;
  limits_->leave(sent.grant, &end, now_is(), 0.5, changes);
  note(changes);
}

bool Sender::send(bool failed) {
  const auto sent = begin();
  if (sent.refused()) return false;
  end(sent, failed);
  return true;
}

void Sender::pause(Duration duration) { limits_->pause(0, now_is() + duration, now_is()); }

bool Sender::wait_until(const std::function<bool()>& good) {
  const auto until = now_is() + std::chrono::seconds(10);
  while (!good()) {
    std::unique_lock lock(mutex_);
    const auto told = told_;
    const auto soon = now_is() + std::chrono::milliseconds(20);
    changed_.wait_until(lock, soon, [&] { return told_ != told; });
    if (now_is() >= until) return false;
  }
  return true;
}

SendGrant Sender::look() const {
  SendAsk ask;
  ask.now = now_is();
  return limits_->look(ask);
}

void Sender::note(const StateChanges& changes) {
  const std::lock_guard lock(mutex_);
  if (!changes.circuit) return;
  circuit_changes_.push_back(*changes.circuit);
  reasons_.push_back(changes.why);
}

std::vector<CircuitChange> Sender::circuit_changes() const {
  const std::lock_guard lock(mutex_);
  return circuit_changes_;
}

std::vector<std::string> Sender::reasons() const {
  const std::lock_guard lock(mutex_);
  return reasons_;
}
