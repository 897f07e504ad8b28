// What a send takes of its limits, and what its end says to them.
#include "lib/core/guard/detail/limits.hpp"

#include <httpretry/guard/local_state.hpp>
#include <httpretry/retry/guard_policy.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <optional>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr Time kNow{1h};
constexpr WallTime kWallNow{1'800'000'000s};

struct LimitsModel {
  explicit LimitsModel(const GuardPolicy& policy) {
    LimitKeys keys;
    keys.policy = std::make_shared<const GuardPolicy>(policy);
    keys.pauses[0] = "pause https://a";
    if (policy.rate) keys.rate = "rate https://a";
    if (policy.concurrency) keys.slots = "slots https://a";
    if (policy.breaker) keys.breaker = "breaker https://a";
    limits = state->limits(keys, kNow);
  }
  SendGrant enter(Time now, bool is_retry = false, double random = 0) const {
    SendAsk ask;
    ask.now = now;
    ask.is_retry = is_retry;
    ask.random = random;
    StateChanges changes;
    return limits->enter(ask, changes);
  }
  void leave(const SendGrant& grant, const std::optional<SendEnd>& end, Time now) const {
    StateChanges changes;
    limits->leave(grant, end ? &*end : nullptr, now, 0.5, changes);
  }

  std::shared_ptr<SharedState> state = local_state();
  std::shared_ptr<SendLimits> limits;
};

// A circuit that other processes share. One of them sends a probe, and all others wait for its end.
class ProbedElsewhere final : public guard::Limits {
 public:
  explicit ProbedElsewhere(LimitKeys keys)
      : Limits(std::static_pointer_cast<guard::LimitState>(local_state()), std::move(keys)) {
    breaker_ = std::make_shared<guard::Scope<guard::Breaker>>();
  }

 private:
  guard::Hold held_by_circuit(Time /*now*/) const override { return {QueuedBy::Circuit, kNever}; }
  std::string why_open() const override { return "5 failures in a row"; }
  ScopeState circuit_now(Time /*now*/) const override {
    ScopeState state;
    state.circuit = Circuit::HalfOpen;
    return state;
  }
  void report_remote_changes(Time now, StateChanges& changes) override {
    changes.why = "its open time has ended";
    report_circuit_change(Circuit::Open, now, changes);
  }
};

GuardPolicy with_breaker(BreakerPolicy::AppliesTo applies_to) {
  GuardPolicy policy;
  policy.breaker.emplace().applies_to = applies_to;
  return policy;
}

// How many sends the ramp after a pause lets out at once when its first one has ended like that.
int width_after(const std::optional<SendEnd>& end) {
  const LimitsModel model{GuardPolicy()};
  model.limits->pause(0, kNow + 1s, kNow);
  const auto first = model.enter(kNow + 1s);
  CHECK(first.held == QueuedBy::Nothing);
  CHECK(model.enter(kNow + 1s).held == QueuedBy::Ramp);
  model.limits->wait(1, 1);  // another send waits, so the ramp does not end
  model.leave(first, end, kNow + 1s);
  int width = 0;
  while (width < 10 && model.enter(kNow + 1s).held == QueuedBy::Nothing) ++width;
  return width;
}

}  // namespace

TEST_CASE("a time that never comes is no date") {
  const LimitsModel model(with_breaker(BreakerPolicy::AppliesTo::All));
  const auto until = [&](Time when) {
    CHECK(model.state->open_circuit("breaker https://a", when, kNow));
    return model.limits->facts(kNow, kWallNow).circuit->until;
  };
  CHECK(until(kNow + 5s) == kWallNow + 5s);
  CHECK(until(kNow - 5s) == kWallNow - 5s);
  CHECK_FALSE(until(kNever));
}

TEST_CASE("the end of a pause is a date if it ever comes") {
  const auto paused_until = [](Time until) {
    const LimitsModel model{GuardPolicy()};
    model.limits->pause(0, until, kNow);
    return model.limits->facts(kNow, kWallNow).limits->paused_until;
  };
  CHECK(paused_until(kNow + 5s) == kWallNow + 5s);
  CHECK_FALSE(paused_until(kNow));
  CHECK(paused_until(kNever - 1ns) == WallTime::max());
  CHECK_FALSE(paused_until(kNever));
}

TEST_CASE("the state of each limit can be read, in the order of their keys, and reset") {
  auto policy = with_breaker(BreakerPolicy::AppliesTo::All);
  policy.rate = RatePolicy::of_requests(1, 1s);
  policy.concurrency.emplace().max = 2;
  const LimitsModel model(policy);
  CHECK(model.enter(kNow).held == QueuedBy::Nothing);
  model.limits->wait(1, 1);
  model.limits->pause(0, kNow + 5s, kNow);
  const auto states = model.state->states("", kNow);
  REQUIRE(states.size() == 4);
  CHECK(states[0].key == "breaker https://a");
  CHECK(states[0].circuit == Circuit::Closed);
  CHECK(states[0].until == kNever);
  CHECK(states[1].key == "pause https://a");
  CHECK(states[1].until == kNow + 5s);
  CHECK_FALSE(states[1].circuit);
  CHECK(states[2].key == "rate https://a");
  CHECK(states[2].until == kNow + 1s);
  CHECK(states[3].key == "slots https://a");
  CHECK(states[3].in_flight == 1);
  for (const auto& one : states) CHECK(one.waiting == 1);

  const auto until = [&](const char* key) { return model.state->states(key, kNow).at(0).until; };
  CHECK(model.state->reset("pause https://a", kNow));
  CHECK(until("pause") == kNever);
  CHECK(model.state->reset("rate https://a", kNow));
  CHECK(until("rate") == Time());
  CHECK(model.state->open_circuit("breaker https://a", kNow + 9s, kNow));
  CHECK(until("breaker") == kNow + 9s);
  CHECK(model.state->reset("breaker https://a", kNow));
  CHECK(until("breaker") == kNever);
  CHECK(model.state->reset("slots https://a", kNow));
  CHECK(model.state->states("slots", kNow).at(0).in_flight == 1);
  for (const auto* key : {"pause https://b", "rate", "slots https://", "breaker https://a b"}) {
    CHECK_FALSE(model.state->reset(key, kNow));
  }
}

TEST_CASE("a breaker for retries only is not asked for the first attempt") {
  const auto held = [](BreakerPolicy::AppliesTo applies_to, bool is_retry) {
    const LimitsModel model(with_breaker(applies_to));
    CHECK(model.state->open_circuit("breaker https://a", kNow + 1h, kNow));
    return model.enter(kNow, is_retry).held;
  };
  CHECK(LimitsModel(GuardPolicy()).enter(kNow, true).held == QueuedBy::Nothing);  // it has none
  CHECK(held(BreakerPolicy::AppliesTo::All, false) == QueuedBy::Circuit);
  CHECK(held(BreakerPolicy::AppliesTo::All, true) == QueuedBy::Circuit);
  CHECK(held(BreakerPolicy::AppliesTo::Retries, false) == QueuedBy::Nothing);
  CHECK(held(BreakerPolicy::AppliesTo::Retries, true) == QueuedBy::Circuit);
}

TEST_CASE("what opened a circuit does not replace the reason for its latest change") {
  LimitKeys keys;
  keys.policy = std::make_shared<const GuardPolicy>(with_breaker(BreakerPolicy::AppliesTo::All));
  keys.breaker = "breaker https://a";
  ProbedElsewhere limits(keys);
  SendAsk ask;
  ask.now = kNow;
  StateChanges changes;
  const auto grant = limits.enter(ask, changes);
  CHECK(grant.held == QueuedBy::Circuit);
  REQUIRE(changes.circuit);
  CHECK(changes.circuit->to == Circuit::HalfOpen);
  CHECK(changes.why == "its open time has ended");
  CHECK(grant.why_open == "5 failures in a row");
}

// This breaker refuses by chance, after all other limits have let the send pass.
TEST_CASE("a send that its breaker refuses takes no place in the other limits") {
  GuardPolicy policy;
  policy.rate = RatePolicy::of_requests(1, 1h);
  policy.rate->burst = 4;
  policy.concurrency.emplace().max = 1;
  policy.breaker.emplace().kind = BreakerPolicy::Kind::Share;
  for (const bool dry_run : {false, true}) {
    CAPTURE(dry_run);
    policy.breaker->dry_run = dry_run;
    const LimitsModel model(policy);
    SendEnd failed;
    failed.failed = true;
    constexpr double kLeast = 0;
    constexpr double kMost = 0.999;
    for (int sends = 0; sends < 3; ++sends) {
      model.leave(model.enter(kNow, false, kMost), failed, kNow);
    }
    const auto first = model.enter(kNow, false, kLeast);
    CHECK(first.refused_share == 0.75);
    CHECK(first.held == (dry_run ? QueuedBy::Nothing : QueuedBy::Circuit));
    if (dry_run) CHECK(model.enter(kNow, false, kMost).held == QueuedBy::Rate);
    if (!dry_run) CHECK(model.enter(kNow, false, kMost).held == QueuedBy::Nothing);
    CHECK(model.enter(kNow, false, kMost).held == QueuedBy::Rate);
    CHECK(model.enter(kNow + 1h, false, kMost).held == QueuedBy::Concurrency);
  }
}

TEST_CASE("a ramp learns from sends that say something of the server") {
  CHECK(width_after(std::nullopt) == 1);
  SendEnd end;
  end.responded = true;
  end.counts = false;
  CHECK(width_after(end) == 1);
  end.counts = true;
  CHECK(width_after(end) == 2);
  end.responded = false;
  CHECK(width_after(end) == 1);
}
