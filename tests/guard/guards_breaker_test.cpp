// The circuit breaker, through the middleware.
#include "world.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace httpretry;
using namespace httpretry::guard_tests;
using namespace std::chrono_literals;

namespace {

// One attempt for each call, and no pause.
std::string with_breaker(const std::string& breaker) {
  return R"({"max_attempts": 1, "pause": "none", "breaker": )" + breaker + "}";
}

// Answers by letters, one a request: 'g' is good, 'f' fails.
void script(World& world, std::string letters) {
  world.server->answer = [letters = std::move(letters)](const Request&, int number) {
    const auto index = std::min(letters.size(), static_cast<std::size_t>(number)) - 1;
    return Reply(letters[index] == 'f' ? 503 : 200);
  };
}

constexpr auto kConsecutive = R"({"kind": "consecutive", "failures": 1, "open_for":
    {"kind": "constant", "interval": "5s"}})";

// A budget that allows everything and counts.
class CountingBudget final : public RetryBudget {
 public:
  int taken = 0;
  int given_back = 0;
  int settled = 0;

  bool take(const Request& /*request*/, const Classified& /*failed*/, Time /*now*/) override {
    ++taken;
    return true;
  }
  void give_back(const Request& /*request*/, Time /*now*/) override { ++given_back; }
  void settle(const Request& /*request*/, bool /*success*/, Time /*now*/) override { ++settled; }
};

}  // namespace

TEST_CASE("breaker: of ten calls that fail three are sent") {
  World world(with_breaker(R"({"failure_ratio": 0.1, "min_requests": 3, "window": "1s",
      "open_for": {"kind": "constant", "interval": "30s"}})"));
  script(world, "f");
  const auto calls = world.run_in_turn(10);
  CHECK(world.sends().size() == 3);
  CHECK(refused(calls) == 7);
  CHECK(world.heard->lines.front() == "open 30s: 3 of 3 failed in 1.00 s");
  const auto& last = calls.back();
  CHECK(last.code() == Errc::CircuitOpen);
  CHECK_FALSE(last.outcome.error().maybe_sent());
  CHECK(last.outcome.error().permanent);
  CHECK(last.history().attempts.empty());
  CHECK(last.history().stop_reason == Reason::CircuitOpen);
  CHECK(last.history().retry_at == world.clock->wall_now() + 30s);
  REQUIRE(last.history().guards);
  REQUIRE(last.history().guards->circuit);
  CHECK(last.history().guards->circuit->state == Circuit::Open);
  CHECK(last.history().guards->circuit->failed == 3);
  CHECK(last.history().guards->circuit->total == 3);
  CHECK_FALSE(last.history().guards->circuit->refused_share);
  CHECK(last.outcome.error().message ==
        "the circuit of http://x is open (3 of 3 failed in 1.00 s)");
}

TEST_CASE("breaker: hystrix opens at ten failures of twenty, not at nine") {
  World ten(with_breaker(R"({"preset": "hystrix"})"));
  script(ten, "ggggggggggfffffffffff");
  ten.run_in_turn(19);
  CHECK(ten.heard->lines.empty());
  ten.call();
  CHECK(ten.heard->lines == Lines{"open 5s: 10 of 20 failed in 10.0 s"});

  World nine(with_breaker(R"({"preset": "hystrix"})"));
  script(nine, "gggggggggggfffffffff");
  nine.run_in_turn(20);
  CHECK(nine.heard->lines.empty());
}

TEST_CASE("breaker: failures in a row, which one success ends") {
  World world(with_breaker(R"({"kind": "consecutive", "failures": 6})"));
  script(world, "fffffgffffffff");
  world.run_in_turn(11);
  CHECK(world.heard->lines.empty());
  world.call();
  CHECK(world.heard->lines == Lines{"open 5s: 6 failures in a row"});
}

TEST_CASE("breaker: the send that makes enough of them may be a good one") {
  World world(with_breaker(R"({"failure_ratio": 0.5, "min_requests": 10})"));
  script(world, "fffffffffgg");
  world.run_in_turn(9);
  CHECK(world.heard->lines.empty());
  world.call();
  CHECK(world.heard->lines == Lines{"open 5s: 9 of 10 failed in 10.0 s"});
  CHECK(world.call().refused());
}

TEST_CASE("breaker: slow is longer than slow_after") {
  World world(with_breaker(R"({"min_requests": 2, "slow_after": "1s", "slow_ratio": 0.5})"));
  auto takes = Duration(1s);
  world.server->answer = [&](const Request&, int) { return Reply(200, takes); };
  world.run_in_turn(3);
  CHECK(world.heard->lines.empty());
  takes = 1s + 1ns;
  world.run_in_turn(3);
  CHECK(world.heard->lines == Lines{"open 5s: 3 of 6 were slow in 10.0 s"});
}

TEST_CASE("breaker: a send that fails late is slow, too") {
  World world(with_breaker(R"({"min_requests": 2, "failure_ratio": 1, "slow_after": "1s",
      "slow_ratio": 0.5})"));
  world.server->answer = [](const Request&, int number) {
    return number == 1 ? Reply(200) : Reply(Error(Errc::Receive, "reset"), 1s + 1ns);
  };
  world.run_in_turn(2);
  CHECK(world.heard->lines == Lines{"open 5s: 1 of 2 were slow in 10.0 s"});
}

TEST_CASE("breaker: a time in the queue is not slow") {
  World world(R"({"max_attempts": 1, "concurrency": {"max": 1}, "breaker":
      {"min_requests": 1, "slow_after": "1s", "slow_ratio": 0.1}})");
  world.server->answer = [](const Request&, int) { return Reply(200, 1s); };
  world.run(at_once(5));
  CHECK(world.sends() == Durations{0s, 1s, 2s, 3s, 4s});
  CHECK(world.heard->lines.empty());
}

TEST_CASE("breaker: each opening in a row is longer, up to a limit") {
  World world(with_breaker(R"({"kind": "consecutive", "failures": 1, "open_for":
      {"initial": "5s", "multiplier": 2, "max_interval": "60s", "jitter": "none"}})"));
  script(world, "f");
  Durations open;
  for (int i = 0; i < 6; ++i) {
    world.call();
    const auto refused_until = world.call().history().retry_at;
    REQUIRE(refused_until);
    open.push_back(*refused_until - world.clock->wall_now());
    world.clock->advance(open.back());
  }
  CHECK(open == Durations{5s, 10s, 20s, 40s, 60s, 60s});
}

TEST_CASE("breaker: as Envoy ejects, and forgets with quiet windows") {
  World world(with_breaker(R"({"kind": "consecutive", "failures": 1, "open_for":
      {"kind": "linear", "initial": "30s", "increment": "30s", "max_interval": "300s"}})"));
  bool good = false;
  world.server->answer = [&](const Request&, int) { return Reply(good ? 200 : 503); };
  Durations open;
  const auto fail = [&] {
    world.call();
    open.push_back(*world.call().history().retry_at - world.clock->wall_now());
    world.clock->advance(open.back());
  };
  for (int i = 0; i < 12; ++i) fail();
  CHECK(open == Durations{30s, 60s, 90s, 120s, 150s, 180s, 210s, 240s, 270s, 300s, 300s, 300s});
  good = true;
  CHECK(world.call().outcome);  // the probe
  world.clock->advance(10 * 10s);
  good = false;
  fail();  // two after twelve: three that were not forgotten, of which this is one
  CHECK(open.back() == 90s);
}

TEST_CASE("breaker: a first attempt does not wait behind a retry that the circuit holds back") {
  World world(R"({"max_attempts": 2, "backoff": {"kind": "constant", "interval": "100ms"},
      "breaker": {"kind": "consecutive", "failures": 1, "applies_to": "retries",
                  "when_open": "wait", "open_for": {"kind": "constant", "interval": "5s"}}})");
  world.server->answer = [](const Request&, int number) { return Reply(number == 1 ? 503 : 200); };
  const auto calls = world.run(at({0s, 50ms, 200ms, 300ms}));
  CHECK(world.sends() == Durations{0s, 50ms, 200ms, 300ms, 5s});
  CHECK(calls[0].outcome->status == 200);
}

TEST_CASE("breaker: a probe that is canceled says nothing, and the next call probes") {
  World world(with_breaker(kConsecutive));
  world.server->answer = [](const Request&, int number) {
    return number == 1 ? Reply(503) : Reply(200, number == 2 ? kForever : 0s);
  };
  world.call();
  world.clock->advance(5s);
  Plan probe;
  probe.at = world.now();
  probe.canceled = world.now() + 1s;
  Plan meanwhile;
  meanwhile.at = world.now() + 500ms;
  Plan next;
  next.at = world.now() + 2s;
  const auto calls = world.run({probe, meanwhile, next});
  CHECK(calls[0].code() == Errc::Canceled);
  CHECK(calls[1].code() == Errc::CircuitOpen);
  CHECK(calls[2].outcome);
  CHECK(world.heard->lines == Lines{"open 5s: 1 failure in a row",
                                    "half_open: its open time has ended", "shed circuit_open",
                                    "closed: a probe succeeded"});
}

TEST_CASE("breaker: a probe that hangs frees its place, and its late vote does not count") {
  World world(with_breaker(R"({"kind": "consecutive", "failures": 1, "probe_timeout": "10s",
      "open_for": {"kind": "constant", "interval": "5s"}})"));
  world.server->answer = [](const Request&, int number) {
    if (number == 1) return Reply(503);
    return number == 2 ? Reply(503, 20s) : Reply(200);
  };
  world.call();
  Plan slow, too_early, second;
  slow.at = 5s;
  too_early.at = 14s;
  second.at = 15s;
  const auto calls = world.run({slow, too_early, second});
  CHECK(calls[0].outcome->status == 503);  // at 25 s: it opens nothing
  CHECK(calls[0].at == 25s);
  CHECK(calls[1].refused());
  CHECK(calls[2].outcome);
  CHECK(world.heard->lines.back() == "closed: a probe succeeded");
}

TEST_CASE("breaker: twenty that are under way when it opens open it once") {
  World world(with_breaker(kConsecutive));
  world.server->answer = [](const Request&, int number) { return Reply(503, number * 100ms); };
  const auto calls = world.run(at_once(20));
  CHECK(refused(calls) == 0);
  for (const auto& one : calls) CHECK(one.outcome->status == 503);
  CHECK(world.heard->lines == Lines{"open 5s: 1 failure in a row"});
  world.clock->advance(3100ms);  // 5 s after the first failure
  CHECK(world.call().outcome);
  CHECK(world.sends().size() == 21);
}

TEST_CASE("breaker: the Retry-After of what opens it counts") {
  World world(with_breaker(kConsecutive));
  world.server->answer = [](const Request&, int number) {
    if (number > 1) return Reply(200);
    return Reply(500).header("Retry-After", "20");
  };
  world.call();
  CHECK(world.heard->lines == Lines{"open 20s: 1 failure in a row"});

  World longer(with_breaker(kConsecutive));  // not more than server_delay.max, which is a minute
  longer.server->answer = [](const Request&, int) {
    return Reply(500).header("Retry-After", "120");
  };
  longer.call();
  CHECK(longer.heard->lines == Lines{"open 1m: 1 failure in a row"});
}

TEST_CASE("breaker: as linkerd, with jitter, and a 429 to a probe opens it again") {
  World world(with_breaker(R"({"kind": "consecutive", "failures": 7, "throttle": "failure",
      "open_for": {"initial": "1s", "multiplier": 2, "max_interval": "60s",
                   "jitter": "proportional", "randomization": 0.5, "cap": "after"}})"));
  int status = 503;
  world.server->answer = [&](const Request&, int) { return Reply(status); };
  world.chance = 0;
  world.run_in_turn(7);
  CHECK(world.heard->lines == Lines{"open 500ms: 7 failures in a row"});
  status = 429;
  for (int i = 0; i < 9; ++i) {
    const auto left = *world.call().history().retry_at - world.clock->wall_now();
    CHECK(left >= 500ms);
    CHECK(left <= 60s);
    world.clock->advance(left);
    world.chance = i % 2 == 0 ? std::nextafter(1.0, 0.0) : 0.5;
    world.call();
    CHECK(world.heard->lines.back().find(": a probe failed") != std::string::npos);
  }
}

TEST_CASE("breaker: a throttle is neutral unless it is a failure") {
  World world(with_breaker(kConsecutive));
  world.server->answer = [](const Request&, int) { return Reply(429); };
  world.run_in_turn(5);
  CHECK(world.heard->lines.empty());
  CHECK(world.sends().size() == 5);
}

TEST_CASE("breaker: a share is refused, the more the fewer succeed") {
  const auto refused_share = [](const std::string& k, int accepts) {
    World world(with_breaker(R"({"kind": "share", "k": )" + k + "}"));
    world.chance = std::nextafter(1.0, 0.0);  // refuses nothing
    script(world, std::string(static_cast<std::size_t>(accepts), 'g') +
                      std::string(static_cast<std::size_t>(101 - accepts), 'f'));
    world.run_in_turn(100);
    const auto last = world.call();
    REQUIRE(last.history().guards);
    return std::round(last.history().guards->circuit->refused_share.value_or(-1) * 1e4) / 1e4;
  };
  CHECK(refused_share("2", 100) == 0);
  CHECK(refused_share("2", 50) == 0);
  CHECK(refused_share("2", 40) == 0.198);
  CHECK(refused_share("2", 10) == 0.7921);
  CHECK(refused_share("2", 0) == 0.9901);
  CHECK(refused_share("1.1", 10) == 0.8812);
}

TEST_CASE("breaker: a send that is refused at random is not told that a circuit is open") {
  World world(with_breaker(R"({"kind": "share"})"));
  world.chance = 0;  // refuses as soon as one has failed
  script(world, "f");
  world.call();
  const auto refusal = world.call();
  CHECK(refusal.code() == Errc::CircuitOpen);
  CHECK(refusal.outcome.error().message ==
        "the circuit breaker of http://x refuses a part of the requests, because too many failed");
}

TEST_CASE("breaker: where only retries ask, every first attempt goes out") {
  World world(R"({"max_attempts": 3, "pause": "none", "budget": "none",
      "backoff": {"kind": "constant", "interval": "10ms"},
      "breaker": {"kind": "consecutive", "failures": 3, "applies_to": "retries"}})");
  script(world, "f");
  const auto first = world.call();
  CHECK(first.outcome->status == 503);
  CHECK(world.sends().size() == 3);
  for (int i = 0; i < 5; ++i) {
    const auto call = world.call();
    REQUIRE(call.outcome);  // as it came: the refusal is of the retry
    CHECK(call.outcome->status == 503);
    CHECK(call.history().stop_reason == Reason::CircuitOpen);
  }
  CHECK(world.sends().size() == 8);
}

TEST_CASE("breaker: one that opens in the middle of a call ends it, and the history stays") {
  World world(R"({"max_attempts": 9, "pause": "none", "budget": "none",
      "backoff": {"kind": "constant", "interval": "10ms"},
      "breaker": {"kind": "consecutive", "failures": 3}})");
  script(world, "f");
  const auto call = world.call();
  CHECK(call.code() == Errc::CircuitOpen);
  CHECK(call.history().attempts.size() == 3);
  CHECK(call.history().attempts.back().status == 503);
  CHECK(call.outcome.error().maybe_sent());  // the attempts before count
}

TEST_CASE("breaker: with when_open: wait a call comes back when it may") {
  World world(R"({"max_attempts": 1, "pause": "none", "breaker": {"kind": "consecutive",
      "failures": 1, "when_open": "wait",
      "open_for": {"kind": "constant", "interval": "5s"}}})");
  script(world, "fggg");
  world.call();
  auto plans = at_once(4);
  plans[3].timeout = 3s;
  const auto calls = world.run(plans);
  CHECK(world.sends() == Durations{0s, 5s, 5s, 5s});
  CHECK(calls[3].code() == Errc::CircuitOpen);
  CHECK(calls[3].at == 0s);
  CHECK(calls[0].history().attempts.front().queued_by == QueuedBy::Circuit);
}

TEST_CASE("breaker: a dry run refuses nothing and tells what it would do") {
  World world(with_breaker(R"({"kind": "consecutive", "failures": 2, "dry_run": true})"));
  script(world, "f");
  world.run_in_turn(5);
  CHECK(world.sends().size() == 5);
  CHECK(world.heard->lines == Lines{"open 5s dry: 2 failures in a row"});
}

TEST_CASE("breaker: the caller's own end counts after a second only") {
  const auto opens = [](Duration timeout) {
    World world(with_breaker(kConsecutive));
    world.server->answer = [](const Request&, int) { return Reply(200, kForever); };
    Plan plan;
    plan.timeout = timeout;
    world.run({plan});
    return !world.heard->lines.empty();
  };
  CHECK_FALSE(opens(999ms));
  CHECK(opens(1s));
}

TEST_CASE("breaker: what is not the server's fault does not count") {
  for (const auto code : {Errc::Canceled, Errc::Internal, Errc::InvalidRequest, Errc::TooLarge}) {
    World world(with_breaker(kConsecutive));
    world.server->answer = [&](const Request&, int) { return Reply(Error(code, "ours"), 0s); };
    world.run_in_turn(3);
    CHECK(world.sends().size() == 3);
  }
  struct Row {
    bool stale;  // the connection was idle for too long
    bool refused;
    bool opens;
  };
  for (const auto& row :
       {Row{true, false, false}, Row{false, true, false}, Row{false, false, true}}) {
    World world(with_breaker(kConsecutive));
    world.server->answer = [&](const Request&, int) {
      Error error(Errc::Receive, "the connection was closed");
      error.exchange.stale_connection = row.stale;
      error.exchange.refused = row.refused;
      return Reply(std::move(error), 0s);
    };
    world.run_in_turn(3);
    CHECK(world.heard->lines.empty() != row.opens);
  }
}

TEST_CASE("breaker: its state can be read, reset and forced") {
  World world(with_breaker(kConsecutive));
  script(world, "fg");
  world.call();
  const auto states = world.state->states("breaker ", world.clock->now());
  REQUIRE(states.size() == 1);
  CHECK(states[0].circuit == Circuit::Open);
  CHECK(states[0].until == world.clock->now() + 5s);
  const auto& key = states[0].key;
  CHECK(key == "breaker http://x /default");

  CHECK(world.state->reset(key, world.clock->now()));
  CHECK(world.call().outcome);
  CHECK(world.state->open_circuit(key, world.clock->now() + 1h, world.clock->now()));
  const auto refusal = world.call();
  CHECK(refusal.code() == Errc::CircuitOpen);
  CHECK(refusal.outcome.error().message ==
        "the circuit of http://x is open (it was opened by the program)");
  CHECK(world.state->close_circuit(key, world.clock->now()));
  CHECK(world.call().outcome);
  CHECK_FALSE(world.state->reset("breaker http://y", world.clock->now()));
}

TEST_CASE("breaker: the kind that refuses a share can also be forced open") {
  World world(with_breaker(R"({"kind": "share"})"));
  script(world, "ggg");
  CHECK(world.call().outcome);
  const auto key = world.state->states("breaker ", world.clock->now()).at(0).key;
  CHECK(world.state->open_circuit(key, world.clock->now() + 1h, world.clock->now()));
  const auto refusal = world.call();
  CHECK(refusal.code() == Errc::CircuitOpen);
  CHECK(refusal.outcome.error().history.retry_at == world.clock->wall_now() + 1h);
  CHECK(world.sends().size() == 1);
  world.clock->advance(1h);
  CHECK(world.call().outcome);
  CHECK(world.state->states("breaker ", world.clock->now()).at(0).circuit == Circuit::Closed);
}

TEST_CASE("a retry that the breaker keeps from being sent costs nothing") {
  // With `wait`, the call is canceled while the retry waits for the circuit.
  for (const auto* when_open : {"fail", "wait"}) {
    CAPTURE(when_open);
    const auto clock = std::make_shared<ManualScheduler>();
    const auto server = std::make_shared<Server>();
    server->answer = [](const Request&, int) { return Reply(503); };
    const auto budget = std::make_shared<CountingBudget>();
    RetryOptions retries;
    retries.budget = budget;
    retries.policies = PolicySource(policies(
        R"({"max_attempts": 3, "backoff": {"kind": "constant", "interval": "100ms"},
            "breaker": {"kind": "consecutive", "failures": 1, "when_open": ")" +
        std::string(when_open) + "\"}}"));
    ClientOptions options;
    options.middlewares = {retry(retries), guards()};
    options.scheduler = clock;
    options.transport = server;
    Client client(options);
    std::stop_source stop;
    CallOptions call;
    call.stop = stop.get_token();
    std::optional<Outcome> outcome;
    client.send_then(
        Request::get("http://x/"), [&](Outcome ended) { outcome = std::move(ended); }, call);
    clock->advance(1s);
    stop.request_stop();
    clock->run();
    REQUIRE(outcome);
    CHECK(server->seen.size() == 1);
    CHECK(budget->taken == 1);
    CHECK(budget->given_back == 1);
    CHECK(budget->settled == 1);
  }
}
