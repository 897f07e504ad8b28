// A policy file that is read again with other numbers: what holds sends back keeps its state.
#include "world.hpp"

#include "tests/client/heard.hpp"
#include "tests/policy/temporary.hpp"

#include <httpretry/policy/policy_source.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace httpretry::guard_tests;
using namespace std::chrono_literals;

namespace {

class Reloading {
 public:
  explicit Reloading(const std::string& blocks)
      : file_(text(blocks)), source_(PolicySource::watch(file_.path()).value()), world(source_) {}

  void reload(const std::string& blocks) {
    file_.replace(text(blocks));
    REQUIRE(source_.reload().has_value());
  }

 private:
  static std::string text(const std::string& blocks) {
    return R"({"version": 1, "default": {"max_attempts": 1, )" + blocks + "}}";
  }
  const httpretry::Heard log_;
  const TemporaryFile file_;
  const PolicySource source_;

 public:
  World world;
};

std::string breaker(int min_requests, const std::string& open_for) {
  return R"("pause": "none", "breaker": {"min_requests": )" + std::to_string(min_requests) +
         R"(, "open_for": {"kind": "constant", "interval": ")" + open_for + "\"}}";
}

}  // namespace

TEST_CASE("reload: a token that was spent is not there again, then the new rate counts") {
  Reloading file(R"("rate": {"limit": "10/s"})");
  auto& world = file.world;
  world.call();
  file.reload(R"("rate": {"limit": "20/s"})");
  world.run(at({0s, 0s, 0s}));
  CHECK(world.sends() == Durations{0s, 100ms, 150ms, 200ms});
}

TEST_CASE("reload: the slots of sends that are under way stay taken") {
  Reloading file(R"("concurrency": {"max": 1})");
  auto& world = file.world;
  world.server->answer = [&](const Request&, int number) {
    if (number == 1) file.reload(R"("concurrency": {"max": 3})");
    return Reply(200, 1s);
  };
  world.run(at({0s, 100ms, 100ms, 100ms, 100ms}));
  CHECK(world.sends() == Durations{0s, 100ms, 100ms, 1s, 1100ms});
}

TEST_CASE("reload: what a limit has learned stays, within the new bounds") {
  const auto aimd = [](int initial, int most) {
    return R"("pause": "none", "concurrency": {"kind": "aimd", "backoff_ratio": 0.5, "initial": )" +
           std::to_string(initial) + R"(, "max": )" + std::to_string(most) + "}";
  };
  Reloading file(aimd(20, 64));
  auto& world = file.world;
  world.server->answer = [](const Request&, int) { return Reply(429); };
  world.run_in_turn(10);
  CHECK(world.heard->lines == Lines{"limit 20 to 10"});
  file.reload(aimd(40, 64));
  world.run_in_turn(10);
  file.reload(aimd(4, 4));
  world.run_in_turn(10);
  CHECK(world.heard->lines == Lines{"limit 20 to 10", "limit 10 to 5", "limit 4 to 2"});
}

TEST_CASE("reload: a breaker keeps what it has counted, and how long it is open") {
  Reloading file(breaker(4, "5s"));
  auto& world = file.world;
  world.server->answer = [](const Request&, int) { return Reply(503); };
  world.run_in_turn(2);
  file.reload(breaker(3, "5s"));
  world.call();
  CHECK(world.heard->lines == Lines{"open 5s: 3 of 3 failed in 10.0 s"});
  file.reload(breaker(3, "7s"));
  CHECK(world.call().code() == Errc::CircuitOpen);
  const auto later = world.run(at({4999ms, 5s}));  // the second one is a probe, and fails
  CHECK(later.front().code() == Errc::CircuitOpen);
  CHECK(world.heard->lines.back() == "open 7s: a probe failed");
  CHECK(world.sends().size() == 4);
}

TEST_CASE("reload: a breaker whose kind becomes or was share begins anew") {
  Reloading file(breaker(1, "5s"));
  auto& world = file.world;
  world.server->answer = [](const Request&, int number) { return Reply(number == 1 ? 503 : 200); };
  world.call();
  CHECK(world.state->states("breaker", world.at(world.now())).front().circuit == Circuit::Open);
  file.reload(R"("pause": "none", "breaker": {"kind": "share"})");
  CHECK(world.call().outcome);
  CHECK(world.state->states("breaker", world.at(world.now())).front().circuit == Circuit::Closed);
  CHECK(world.heard->lines.back() == "closed: its kind has changed");

  // Four are under way, which share has counted and which are no failures.
  world.server->answer = [&](const Request&, int number) {
    if (number == 6) file.reload(breaker(2, "5s"));
    return Reply(200, 1s);
  };
  world.run(at({0s, 0s, 0s, 0s, 10ms, 20ms}));
  const auto state = world.state->states("breaker", world.at(world.now())).front();
  CHECK(state.circuit == Circuit::Closed);
  CHECK(state.total == 2);
  CHECK(state.failed == 0);
}

TEST_CASE("reload: a pause goes on until its time") {
  Reloading file(R"("pause": {"max": "30s"})");
  auto& world = file.world;
  world.server->answer = [](const Request&, int number) {
    return number == 1 ? Reply(429).header("Retry-After", "10") : Reply(200);
  };
  world.call();
  file.reload(R"("pause": {"max": "20s", "resume": "all"})");
  world.run(at({1s, 1s}));
  CHECK(world.sends() == Durations{0s, 10s, 10s});
}
