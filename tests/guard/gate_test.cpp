// The gate in virtual time, with sends that take as long as they are told to.
#include "lib/core/guard/gate.hpp"

#include "tests/rounds.hpp"

#include <httpretry/flow/start.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {

// One send of a model.
struct Plan {
  Duration at{};
  Duration takes = 100ms;
  Duration limit = kForever;  // of waiting, since `at`
  Duration canceled = kForever;
  bool fails = false;
  std::int64_t cost = 1;
  std::shared_ptr<const GuardPolicy> policy;
  std::string host = "https://a";
};

const GuardNames kNames = [] {
  GuardNames names;
  names.rate = names.concurrency = names.breaker = "policy";
  return names;
}();

struct Seen {
  Duration sent = kForever;  // since the beginning; kForever: it was not sent
  Duration ended{};
  QueuedBy refused = QueuedBy::Nothing;
  bool canceled = false;
};

class GateModel {
 public:
  std::vector<Seen> run(const std::vector<Plan>& plans) {
    std::vector<Seen> seen(plans.size());
    std::vector<Task<>> tasks;
    tasks.reserve(plans.size());
    for (std::size_t index = 0; index < plans.size(); ++index) {
      tasks.push_back(send(plans[index], seen[index]));
    }
    clock_.run(when_all(std::move(tasks)));
    return seen;
  }

  Gate gate{local_state()};
  std::function<void(Duration now)> on_send = [](Duration) {};

  [[nodiscard]] Time at(Duration since) const { return began_ + since; }

 private:
  Task<> send(const Plan& plan, Seen& seen) {
    co_await clock_.sleep_until(at(plan.at), {});
    std::stop_source stop;
    auto canceler = cancel_later(plan, stop);
    auto sender = attempt(plan, seen, stop.get_token());
    co_await when_all(std::move(canceler), std::move(sender));
  }
  Task<> cancel_later(const Plan& plan, std::stop_source stop) {
    if (plan.canceled == kForever) co_return;
    co_await clock_.sleep_until(at(plan.canceled), {});
    stop.request_stop();
  }
  Task<> attempt(const Plan& plan, Seen& seen, std::stop_token stop) {
    Sender sender;
    sender.policy = plan.policy;
    sender.host = plan.host;
    sender.names = &kNames;
    sender.ask.priority = plan.policy->priority;
    sender.ask.cost = plan.cost;
    sender.deadline = plan.limit == kForever ? kNever : clock_.now() + plan.limit;
    Gate::Turn turn(gate, sender, clock_.now());
    while (turn.status() == Gate::Turn::Status::Waiting) {
      const bool whole = co_await turn.wait(clock_, stop);
      if (!whole) seen.canceled = true;
      if (!whole) break;
    }
    if (turn.status() == Gate::Turn::Status::Refused) {
      seen.refused = turn.why().by;
      seen.canceled = false;
    }
    seen.ended = now();
    if (turn.status() != Gate::Turn::Status::Granted || seen.canceled) co_return;
    seen.sent = now();
    on_send(now());
    co_await clock_.sleep_until(clock_.now() + plan.takes, {});
    SendEnd ended;
    ended.failed = ended.dropped = plan.fails;
    ended.responded = !plan.fails;
    turn.end(ended, clock_.now(), 0.5);
    seen.ended = now();
  }
  [[nodiscard]] Duration now() const { return clock_.now() - began_; }

  ManualScheduler clock_;
  Time began_ = clock_.now();
};

using PolicyPtr = std::shared_ptr<const GuardPolicy>;

template <class Change>
PolicyPtr policy_with(const Change& change) {
  GuardPolicy policy;
  change(policy);
  return std::make_shared<const GuardPolicy>(std::move(policy));
}

void add_rate(GuardPolicy& policy, std::int64_t requests, std::int64_t burst) {
  policy.rate.emplace();
  policy.rate->requests = requests;
  policy.rate->burst = burst;
}

void add_slots(GuardPolicy& policy, int max) { policy.concurrency.emplace().max = max; }

void add_breaker(GuardPolicy& policy, int failures) {
  auto& breaker = policy.breaker.emplace();
  breaker.kind = BreakerPolicy::Kind::Consecutive;
  breaker.failures = failures;
  breaker.open_for.jitter = Backoff::Jitter::None;
}

std::vector<Plan> sends_of(const PolicyPtr& policy, std::size_t count) {
  Plan plan;
  plan.policy = policy;
  return std::vector<Plan>(count, plan);
}

// When the sends began.
std::vector<Duration> times(const std::vector<Seen>& seen) {
  std::vector<Duration> times;
  for (const auto& one : seen) {
    if (one.sent != kForever) times.push_back(one.sent);
  }
  return times;
}

std::size_t refused(const std::vector<Seen>& seen, QueuedBy by) {
  return static_cast<std::size_t>(
      std::count_if(seen.begin(), seen.end(), [&](const Seen& one) { return one.refused == by; }));
}

using Waits = std::vector<Duration>;

}  // namespace

TEST_CASE("rate: sends follow each other as they came, and a canceled one leaves its place") {
  const auto policy = policy_with([](auto& guards) { add_rate(guards, 10, 1); });
  GateModel model;
  CHECK(times(model.run(sends_of(policy, 5))) == Waits{0ms, 100ms, 200ms, 300ms, 400ms});

  GateModel other;
  auto plans = sends_of(policy, 5);
  plans[2].canceled = 150ms;
  const auto seen = other.run(plans);
  CHECK(seen[2].canceled);
  CHECK(times(seen) == Waits{0ms, 100ms, 200ms, 300ms});
}

TEST_CASE("rate: who would wait too long is told at once") {
  const auto policy = policy_with([](auto& guards) {
    add_rate(guards, 10, 1);
    guards.rate->max_wait = 250ms;
  });
  GateModel model;
  const auto seen = model.run(sends_of(policy, 6));
  CHECK(times(seen) == Waits{0ms, 100ms, 200ms});
  CHECK(refused(seen, QueuedBy::Rate) == 3);
  for (const auto& one : seen) CHECK((one.refused == QueuedBy::Nothing || one.ended == 0ms));

  GateModel limited;
  auto plans = sends_of(policy, 3);
  plans[2].limit = 199ms;
  CHECK(refused(limited.run(plans), QueuedBy::Rate) == 1);
}

TEST_CASE("rate: of several rates, the shortest limit of a wait counts") {
  const auto policy = policy_with([](auto& guards) {
    guards.rate = RatePolicy::of_requests(1, 1s);
    guards.rate->further.assign(2, RatePolicy::of_requests(1, 1s));
    guards.rate->further[0].max_wait = 1s;
    guards.rate->further[1].max_wait = 2s;
  });
  GateModel model;
  const auto seen = model.run(sends_of(policy, 3));
  CHECK(times(seen) == Waits{0s, 1s});
  CHECK(seen[2].refused == QueuedBy::Rate);
  CHECK(seen[2].ended == 0s);
}

TEST_CASE("pause: nothing goes out, then one, two, four") {
  const auto policy = policy_with([](auto&) {});
  GateModel model;
  Sender sender;
  sender.policy = policy;
  sender.host = "https://a";
  model.gate.pause(sender, GuardScope::Host, model.at(7s), model.at(0s));
  CHECK_FALSE(model.gate.quiet());
  const auto seen = model.run(sends_of(policy, 15));
  std::map<Duration, int> rounds;
  for (const auto time : times(seen)) ++rounds[time];
  CHECK(rounds == std::map<Duration, int>{{7s, 1}, {7100ms, 2}, {7200ms, 4}, {7300ms, 8}});

  // What comes when the pause is over and nobody waits finds no trace of it.
  auto later = sends_of(policy, 10);
  for (auto& plan : later) plan.at = 10s;
  CHECK(times(model.run(later)) == Waits(10, 10s));
  CHECK(model.gate.quiet());
}

TEST_CASE("pause: sends that come together when it is over find its ramp, though none waited") {
  const auto policy = policy_with([](auto&) {});
  GateModel model;
  Sender sender;
  sender.policy = policy;
  sender.host = "https://a";
  model.gate.pause(sender, GuardScope::Host, model.at(7s), model.at(0s));
  auto plans = sends_of(policy, 7);
  for (auto& plan : plans) plan.at = 7s;
  std::map<Duration, int> rounds;
  for (const auto time : times(model.run(plans))) ++rounds[time];
  CHECK(rounds == std::map<Duration, int>{{7s, 1}, {7100ms, 2}, {7200ms, 4}});
}

TEST_CASE("pause: who cannot wait that long is told at once, also who waits already") {
  const auto policy = policy_with([](auto& guards) { add_slots(guards, 1); });
  GateModel model;
  auto plans = sends_of(policy, 3);
  plans[0].takes = 1s;
  plans[1].limit = 5s;  // waits for the slot when the pause begins
  plans[2].limit = 5s;
  plans[2].at = 200ms;
  Sender sender;
  sender.policy = policy;
  sender.host = "https://a";
  model.on_send = [&](Duration now) {
    if (now == 0s) model.gate.pause(sender, GuardScope::Host, model.at(7s), model.at(0s));
  };
  const auto seen = model.run(plans);
  CHECK(refused(seen, QueuedBy::Pause) == 2);
  CHECK(seen[1].ended == 0s);
  CHECK(seen[2].ended == 200ms);
}

TEST_CASE("concurrency: no more than the limit, the rest as they came") {
  const auto policy = policy_with([](auto& guards) { add_slots(guards, 2); });
  GateModel model;
  CHECK(times(model.run(sends_of(policy, 5))) == Waits{0ms, 0ms, 100ms, 100ms, 200ms});

  const auto last_first = policy_with([](auto& guards) {
    add_slots(guards, 1);
    guards.concurrency->queue.order = ConcurrencyPolicy::Order::Lifo;
  });
  GateModel reversed;
  CHECK(times(reversed.run(sends_of(last_first, 4))) == Waits{0ms, 300ms, 200ms, 100ms});
}

TEST_CASE("concurrency: the queue has an end, and a limit of time") {
  const auto policy = policy_with([](auto& guards) {
    add_slots(guards, 1);
    guards.concurrency->queue.max = 2;
    guards.concurrency->queue.timeout = 150ms;
  });
  GateModel model;
  const auto seen = model.run(sends_of(policy, 5));
  CHECK(times(seen) == Waits{0ms, 100ms});
  CHECK(seen[2].ended == 150ms);
  CHECK(seen[2].refused == QueuedBy::Concurrency);
  CHECK(seen[3].ended == 0ms);
  CHECK(refused(seen, QueuedBy::Concurrency) == 3);
}

TEST_CASE("priority: high goes before low, and low is not forgotten") {
  const auto low = policy_with([](auto& guards) {
    add_slots(guards, 1);
    guards.priority = Priority::Low;
  });
  const auto high = policy_with([](auto& guards) {
    add_slots(guards, 1);
    guards.priority = Priority::High;
  });
  GateModel model;
  auto plans = sends_of(low, 3);
  for (const auto& plan : sends_of(high, 3)) plans.push_back(plan);
  const auto seen = model.run(plans);
  CHECK(seen[0].sent == 0ms);
  CHECK(seen[3].sent == 100ms);
  CHECK(seen[5].sent == 300ms);
  CHECK(seen[1].sent == 400ms);
}

TEST_CASE("a breaker that opens refuses who waits") {
  const auto policy = policy_with([](auto& guards) {
    add_slots(guards, 1);
    add_breaker(guards, 5);
  });
  GateModel model;
  auto plans = sends_of(policy, 40);
  for (auto& plan : plans) plan.fails = true;
  const auto seen = model.run(plans);
  CHECK(times(seen).size() == 5);
  CHECK(refused(seen, QueuedBy::Circuit) == 35);
}

TEST_CASE("a breaker with when_open: wait sends them when it closes") {
  const auto policy = policy_with([](auto& guards) {
    add_breaker(guards, 1);
    guards.breaker->when_open = BreakerPolicy::WhenOpen::Wait;
  });
  GateModel model;
  auto plans = sends_of(policy, 4);
  plans[0].fails = true;
  for (std::size_t index = 1; index < plans.size(); ++index) plans[index].at = 200ms;
  plans[3].limit = 1s;
  const auto seen = model.run(plans);
  CHECK(seen[1].sent == 5100ms);
  CHECK(seen[2].sent == 5200ms);  // the probe has closed it
  CHECK(seen[3].refused == QueuedBy::Circuit);

  // Waiting sends leave as they do after a pause: one, two, four.
  GateModel many;
  auto waiting = sends_of(policy, 9);
  waiting[0].fails = true;
  for (std::size_t index = 1; index < waiting.size(); ++index) waiting[index].at = 200ms;
  std::map<Duration, int> rounds;
  for (const auto time : times(many.run(waiting))) ++rounds[time];
  CHECK(rounds ==
        std::map<Duration, int>{{0ms, 1}, {5100ms, 1}, {5200ms, 1}, {5300ms, 2}, {5400ms, 4}});
}

TEST_CASE("a send that waits for a probe that hangs becomes a probe itself") {
  const auto policy = policy_with([](auto& guards) {
    add_breaker(guards, 1);
    guards.breaker->when_open = BreakerPolicy::WhenOpen::Wait;
    guards.breaker->probe_timeout = 7s;
  });
  auto plans = sends_of(policy, 3);
  plans[0].fails = true;
  plans[1].at = plans[2].at = 200ms;
  plans[1].takes = 100s;
  GateModel model;
  CHECK(times(model.run(plans)) == Waits{0ms, 5100ms, 12100ms});
}

TEST_CASE("what a send changes lets out or refuses the sends that wait at another gate") {
  const auto policy = policy_with([](auto& guards) {
    add_slots(guards, 1);
    add_breaker(guards, 1);
  });
  const auto state = local_state();
  Gate one{state};
  Gate other{state};
  Sender sender;
  sender.policy = policy;
  sender.host = "https://a";
  const Time now{1h};
  using Status = Gate::Turn::Status;
  Gate::Turn first(one, sender, now);
  const Gate::Turn second(other, sender, now);
  Gate::Turn third(one, sender, now);
  const Gate::Turn fourth(other, sender, now);
  CHECK(first.status() == Status::Granted);
  CHECK(second.status() == Status::Waiting);
  CHECK(third.status() == Status::Waiting);
  for (const auto& one : state->states("", now)) CHECK(one.waiting == 3);
  first.end({}, now, 0.5);  // its own gate comes first
  CHECK(third.status() == Status::Granted);
  CHECK(second.status() == Status::Waiting);
  third.end({}, now, 0.5);
  CHECK(second.status() == Status::Granted);
  CHECK(fourth.status() == Status::Waiting);
  const Gate::Turn fifth(one, sender, now);
  CHECK(fifth.status() == Status::Waiting);
  CHECK(state->open_circuit("breaker https://a", now + 1h, now));
  for (const auto* turn : {&fourth, &fifth}) {
    CHECK(turn->status() == Status::Refused);
    CHECK(turn->why().by == QueuedBy::Circuit);
  }
  for (const auto& one : state->states("", now)) CHECK(one.waiting == 0);
}

TEST_CASE("a breaker that opens refuses at once who cannot wait for it, also behind one who can") {
  const auto policy = policy_with([](auto& guards) {
    add_slots(guards, 1);
    add_breaker(guards, 1);
    guards.breaker->when_open = BreakerPolicy::WhenOpen::Wait;
  });
  auto plans = sends_of(policy, 4);
  plans[0].fails = true;
  plans[2].limit = 5099ms;
  plans[3].limit = 5100ms;
  GateModel model;
  const auto seen = model.run(plans);
  CHECK(seen[1].sent == 5100ms);
  CHECK(seen[2].refused == QueuedBy::Circuit);
  CHECK(seen[2].ended == 100ms);
  CHECK(seen[3].ended == 5100ms);  // it could wait so long, but another send is the probe
  CHECK(seen[3].sent == kForever);
}

TEST_CASE("a breaker of the kind share is never open, so no send waits for it") {
  const auto policy = policy_with([](auto& guards) {
    auto& breaker = guards.breaker.emplace();
    breaker.kind = BreakerPolicy::Kind::Share;
    breaker.when_open = BreakerPolicy::WhenOpen::Wait;
  });
  GateModel model;
  auto plans = sends_of(policy, 2);
  plans[0].fails = true;
  plans[1].at = 200ms;
  plans[1].limit = 1s;
  const auto seen = model.run(plans);
  CHECK(seen[1].refused == QueuedBy::Circuit);
  CHECK(seen[1].ended == 200ms);
}

TEST_CASE("a send goes out even if its limit allows it before it begins to wait") {
  const auto policy = policy_with([](auto& guards) { add_rate(guards, 10, 1); });
  Gate gate{local_state()};
  ManualScheduler clock;
  Sender sender;
  sender.policy = policy;
  sender.host = "https://a";
  const Gate::Turn first(gate, sender, clock.now());
  Gate::Turn second(gate, sender, clock.now());
  CHECK(second.status() == Gate::Turn::Status::Waiting);
  clock.advance(150ms);  // such as the time that an observer takes
  start(second.wait(clock, {}), [](const Result<bool>&) {});
  clock.run();
  CHECK(second.status() == Gate::Turn::Status::Granted);
}

TEST_CASE("what waits for one thing holds no other") {
  // The slot is taken until 1 s; the tokens stay full meanwhile.
  const auto policy = policy_with([](auto& guards) {
    add_slots(guards, 1);
    add_rate(guards, 1, 1);
  });
  GateModel model;
  auto plans = sends_of(policy, 3);
  plans[0].takes = 3s;
  plans[1].canceled = 2s;
  const auto seen = model.run(plans);
  CHECK(seen[1].canceled);
  CHECK(seen[2].sent == 3s);
}

TEST_CASE("scopes: hosts have states of their own") {
  const auto policy = policy_with([](auto& guards) { add_rate(guards, 1, 1); });
  GateModel model;
  auto plans = sends_of(policy, 4);
  plans[2].host = plans[3].host = "https://b";
  CHECK(times(model.run(plans)) == Waits{0s, 1s, 0s, 1s});

  const auto together = policy_with([](auto& guards) {
    add_rate(guards, 1, 1);
    guards.rate->scope = GuardScope::Policy;
  });
  for (auto& plan : plans) plan.policy = together;
  GateModel other;
  CHECK(times(other.run(plans)) == Waits{0s, 1s, 2s, 3s});
}

TEST_CASE("a new version of a policy keeps the states") {
  const auto before = policy_with([](auto& guards) { add_rate(guards, 1, 1); });
  const auto after = policy_with([](auto& guards) { add_rate(guards, 2, 1); });
  GateModel model;
  auto plans = sends_of(before, 2);
  plans[1].policy = after;
  plans[1].at = 100ms;
  CHECK(times(model.run(plans)) == Waits{0s, 1s});
}

TEST_CASE("states that nobody uses are dropped") {
  const auto policy = policy_with([](auto& guards) { add_slots(guards, 1); });
  Gate gate{local_state()};
  for (std::size_t index = 0; index < 4 * Gate::kMaxIdleQueues; ++index) {
    const auto host = "https://" + std::to_string(index);
    Sender sender;
    sender.policy = policy;
    sender.host = host;
    const Gate::Turn turn(gate, sender, Time(1h));
    REQUIRE(turn.status() == Gate::Turn::Status::Granted);
  }
  CHECK(gate.queues() <= Gate::kMaxIdleQueues + 1);
}

TEST_CASE("limits hold for random sends") {
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (int run = 0; run < 40; ++run) {
    const auto policy = policy_with([&](auto& guards) {
      if (random() % 2 == 0) add_rate(guards, 1 + random() % 50, 1 + random() % 5);
      if (random() % 2 == 0) add_slots(guards, 1 + static_cast<int>(random() % 5));
      if (random() % 3 == 0) add_breaker(guards, 1 + static_cast<int>(random() % 4));
    });
    auto plans = sends_of(policy, 100);
    for (auto& plan : plans) {
      plan.at = std::chrono::milliseconds(random() % 3'000);
      plan.takes = std::chrono::milliseconds(random() % 300);
      plan.fails = random() % 4 == 0;
      if (random() % 4 == 0) plan.limit = std::chrono::milliseconds(random() % 2'000);
      if (random() % 8 == 0) plan.canceled = plan.at + std::chrono::milliseconds(random() % 500);
    }
    GateModel model;
    Sender sender;
    sender.policy = policy;
    sender.host = "https://a";
    const auto pause_until = std::chrono::milliseconds(random() % 2'000);
    model.gate.pause(sender, GuardScope::Host, model.at(pause_until), model.at(0s));
    const auto seen = model.run(plans);

    std::multiset<Duration> sent, ended;
    for (const auto& one : seen) {
      const bool was_sent = one.sent != kForever;
      CHECK(was_sent + (one.refused != QueuedBy::Nothing) + (one.canceled && !was_sent) == 1);
      if (was_sent) sent.insert(one.sent);
      if (was_sent) ended.insert(one.ended);
    }
    for (auto first = sent.begin(); first != sent.end(); ++first) {
      REQUIRE(*first >= pause_until);
      if (policy->rate) {
        const auto in_a_second = std::distance(first, sent.lower_bound(*first + 1s));
        REQUIRE(in_a_second <= policy->rate->requests + policy->rate->burst);
      }
      if (policy->concurrency) {
        const auto begun = std::distance(sent.begin(), sent.upper_bound(*first));
        const auto over = std::distance(ended.begin(), ended.upper_bound(*first));
        REQUIRE(begun - over <= policy->concurrency->max);
      }
    }
  }
}

namespace {

PolicyPtr requests_and_tokens() {
  return policy_with([](auto& guards) {
    guards.rate = RatePolicy::of_requests(60, 1min);
    guards.rate->burst = 2;
    guards.rate->further = {RatePolicy::of_cost(600, 1min)};
    guards.rate->scope = guards.rate->further[0].scope = GuardScope::Policy;
    add_slots(guards, 100);  // enough for all sends, and each host has its own
  });
}

std::vector<Plan> sends_that_cost(const std::vector<std::int64_t>& costs, const PolicyPtr& policy) {
  auto plans = sends_of(policy, costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) plans[i].cost = costs[i];
  return plans;
}

// The tokens of one rate, as a bucket that fills up.
struct Bucket {
  double most, per_second;
  double level = most;
  double at = 0;  // in seconds
  [[nodiscard]] double ready_at(double amount) const {
    return at + std::max(amount - level, 0.0) / per_second;
  }
  void take(double amount, double now) {
    level = std::min(most, level + (now - at) * per_second) - amount;
    at = now;
  }
};

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

TEST_CASE("costs: each send waits for the slower of two rates, in the order of arrival") {
  const auto policy = requests_and_tokens();
  struct Row {
    std::vector<std::int64_t> costs;
    Waits times;
  };
  const Row rows[] = {
      {{1, 1, 1, 1}, {0s, 0s, 1s, 2s}},             // 60 requests a minute, 2 at once
      {{600, 10, 20}, {0s, 1s, 3s}},                // 10 tokens a second
      {{500, 200, 1, 1}, {0s, 10s, 10100ms, 11s}},  // the cheap ones do not pass
      {{600, 0, 0, 600}, {0s, 0s, 1s, 60s}},
  };
  for (const auto& row : rows) {
    GateModel model;
    CHECK(times(model.run(sends_that_cost(row.costs, policy))) == row.times);
    // Different queues, which share the rate.
    auto plans = sends_that_cost(row.costs, policy);
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].host += std::to_string(i);
    GateModel other;
    CHECK(times(other.run(plans)) == row.times);
  }
}

TEST_CASE("costs: a send that leaves the queue takes nothing, and the next one goes at once") {
  for (const std::string host : {"https://a", "https://b"}) {
    auto plans = sends_that_cost({500, 600, 100}, requests_and_tokens());
    plans[1].canceled = 5s;
    plans[2].host = host;
    GateModel model;
    CHECK(times(model.run(plans)) == Waits{0s, 5s});

    plans[1].canceled = kForever;
    plans[1].limit = 70s;
    GateModel patient;
    CHECK(times(patient.run(plans)) == Waits{0s, 50s, 60s});
    plans[1].limit = 40s;
    plans[2].at = 1s;
    GateModel impatient;
    CHECK(times(impatient.run(plans)) == Waits{0s, 1s});
  }
}

TEST_CASE("costs: a send that would wait too long behind others is refused at once") {
  const auto policy = policy_with([](auto& guards) {
    guards.rate = RatePolicy::of_cost(600, 1min);
    guards.rate->max_wait = 30s;
  });
  GateModel model;
  const auto seen = model.run(sends_that_cost({600, 100, 150, 60, 50}, policy));
  CHECK(times(seen) == Waits{0s, 10s, 25s, 30s});
  CHECK(seen[3].refused == QueuedBy::Rate);
  CHECK(seen[3].ended == 0s);
}

TEST_CASE("costs: random sends go as two buckets of tokens let them, and take what they cost") {
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (int run = 0; run < rounds(60); ++run) {
    const auto policy = policy_with([&](auto& guards) {
      guards.rate = RatePolicy::of_requests(1 + random() % 600, 1min);
      guards.rate->burst = 1 + random() % 4;
      auto& tokens = guards.rate->further.emplace_back();
      tokens = RatePolicy::of_cost(1 + random() % 100'000, 1min);
      if (random() % 2 == 0) tokens.burst = 1 + random() % 20'000;
      guards.rate->scope = tokens.scope = GuardScope::Policy;
    });
    const auto burst = policy->rate->further[0].burst;
    auto plans = sends_of(policy, 60);
    for (auto& plan : plans) {
      plan.at = std::chrono::milliseconds(random() % 60'000);
      plan.takes = std::chrono::milliseconds(random() % 300);
      plan.cost = static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(burst) + 1));
      plan.host += std::to_string(random() % 3);  // three queues
      if (random() % 5 == 0) plan.canceled = plan.at + std::chrono::milliseconds(random() % 30'000);
    }
    std::stable_sort(plans.begin(), plans.end(),
                     [](const Plan& a, const Plan& b) { return a.at < b.at; });
    GateModel model;
    const auto seen = model.run(plans);

    const auto bucket_of = [](const RatePolicy& rate) {
      return Bucket{static_cast<double>(rate.burst),
                    static_cast<double>(rate.requests) / seconds(rate.per)};
    };
    auto requests = bucket_of(*policy->rate);
    auto tokens = bucket_of(policy->rate->further[0]);
    double free_at = 0;  // when all earlier sends have left the queue
    for (std::size_t i = 0; i < plans.size(); ++i) {
      CAPTURE(run);
      CAPTURE(i);
      const auto cost = static_cast<double>(plans[i].cost);
      const auto time =
          std::max({seconds(plans[i].at), free_at, requests.ready_at(1), tokens.ready_at(cost)});
      const bool canceled = plans[i].canceled != kForever && seconds(plans[i].canceled) < time;
      REQUIRE((seen[i].sent == kForever) == canceled);
      free_at = canceled ? std::max(free_at, seconds(plans[i].canceled)) : time;
      if (canceled) continue;
      REQUIRE(std::abs(seconds(seen[i].sent) - time) < 1e-4);
      requests.take(1, time);
      tokens.take(cost, time);
    }
    // In any window, the sends cost no more than the rate allows in it, and the burst.
    for (const auto& first : seen) {
      for (const auto& last : seen) {
        if (first.sent == kForever || last.sent == kForever || last.sent < first.sent) continue;
        double cost = 0;
        for (std::size_t i = 0; i < seen.size(); ++i) {
          if (seen[i].sent >= first.sent && seen[i].sent <= last.sent)
            cost += static_cast<double>(plans[i].cost);
        }
        REQUIRE(cost <= tokens.most + seconds(last.sent - first.sent) * tokens.per_second + 1e-3);
      }
    }
  }
}

namespace {

// A slot for one send, with a queue for which memory may be short.
struct OneSlot final : SendLimits {
  SendGrant enter(const SendAsk& ask, StateChanges& /*changes*/) override {
    const auto grant = look(ask);
    is_free = false;
    return grant;
  }
  [[nodiscard]] SendGrant look(const SendAsk& /*ask*/) const override {
    SendGrant grant;
    if (!is_free) grant.held = QueuedBy::Concurrency;
    return grant;
  }
  void vote_early(SendGrant& /*grant*/, const SendEnd& /*end*/, Time /*now*/, double /*random*/,
                  StateChanges& /*changes*/) override {}
  void leave(const SendGrant& /*grant*/, const SendEnd* /*end*/, Time /*now*/, double /*random*/,
             StateChanges& /*changes*/) override {
    is_free = true;
  }
  void wait(int more, std::int64_t /*more_cost*/) override {
    if (more > 0 && std::exchange(memory_is_short, false)) throw std::bad_alloc();
  }
  [[nodiscard]] Waiting waiting(const SendAsk& /*ask*/) const override { return {}; }
  void pause(std::size_t /*which*/, Time /*until*/, Time /*now*/) override {}
  [[nodiscard]] GuardFacts facts(Time /*now*/, WallTime /*wall_now*/) const override { return {}; }

  bool is_free = true;
  bool memory_is_short = false;
};

struct OneSlotState final : SharedState {
  std::shared_ptr<SendLimits> limits(LimitKeys /*keys*/, Time /*now*/) override { return slot; }
  std::shared_ptr<RetryAccount> account(const std::string& /*key*/, const BudgetPolicy& /*policy*/,
                                        Time /*now*/) override {
    return nullptr;
  }
  std::shared_ptr<HedgeAccount> hedges(const std::string& /*key*/, Time /*now*/) override {
    return nullptr;
  }
  [[nodiscard]] std::vector<ScopeState> states(std::string_view /*prefix*/,
                                               Time /*now*/) const override {
    return {};
  }
  bool reset(std::string_view /*key*/, Time /*now*/) override { return false; }
  bool open_circuit(std::string_view /*key*/, Time /*until*/, Time /*now*/) override {
    return false;
  }
  bool close_circuit(std::string_view /*key*/, Time /*now*/) override { return false; }

  const std::shared_ptr<OneSlot> slot = std::make_shared<OneSlot>();
};

}  // namespace

TEST_CASE("a send for which memory is short leaves no place in the queue behind") {
  const auto state = std::make_shared<OneSlotState>();
  Gate gate{state};
  Sender sender;
  sender.policy = policy_with([](auto& guards) { add_slots(guards, 1); });
  sender.host = "https://a";
  const Time now{1h};
  Gate::Turn first(gate, sender, now);
  CHECK(first.status() == Gate::Turn::Status::Granted);
  state->slot->memory_is_short = true;
  CHECK_THROWS_AS(Gate::Turn(gate, sender, now), std::bad_alloc);
  Gate::Turn second(gate, sender, now);
  CHECK(second.status() == Gate::Turn::Status::Waiting);
  first.end({}, now, 0.5);
  CHECK(second.status() == Gate::Turn::Status::Granted);
}

TEST_CASE("many threads: the limit holds, and every turn ends") {
  const auto policy = policy_with([](auto& guards) {
    add_slots(guards, 3);
    add_breaker(guards, 5);
  });
  Gate gate{local_state()};
  std::atomic<int> under_way = 0;
  std::atomic<int> sent = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int sends = 0; sends < 2'000; ++sends) {
        Sender sender;
        sender.policy = policy;
        sender.host = "https://a";
        Gate::Turn turn(gate, sender, Time(1h));
        if (turn.status() != Gate::Turn::Status::Granted) continue;
        CHECK(++under_way <= 3);
        ++sent;
        --under_way;
        turn.end({}, Time(1h), 0.5);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(sent > 0);
  Sender sender;
  sender.policy = policy;
  sender.host = "https://a";
  CHECK(Gate::Turn(gate, sender, Time(1h)).status() == Gate::Turn::Status::Granted);
}
