// What hedges are decided by, where clients share it.
#include "hedging.hpp"

#include <httpretry/guard/local_state.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

PolicySet with_hedge(const std::string& block) {
  return parse_policies(R"({"version": 1, "default": {"hedge": )" + block + "}}", "policy.json")
      .value();
}

// A client with that policy, and a server whose second response comes at once.
struct Sharing : Conversation {
  Sharing(PolicySet set, std::shared_ptr<SharedState> state, std::shared_ptr<ManualScheduler> time)
      : client_(options(std::move(set), std::move(state), std::move(time))) {
    network->say(Response(200), 1s).say(Response(200));
  }

  Outcome call() { return client_.get("http://x/"); }

 private:
  ClientOptions options(PolicySet set, std::shared_ptr<SharedState> state,
                        std::shared_ptr<ManualScheduler> time) {
    clock = std::move(time);
    ClientOptions options;
    options.middlewares = {retry(std::move(set)), hedge()};
    options.scheduler = clock;
    options.transport = network;
    options.shared_state = std::move(state);
    return options;
  }
  Client client_;
};

struct SharedHedges {
  std::shared_ptr<SharedState> state = local_state();
  std::shared_ptr<ManualScheduler> clock = std::make_shared<ManualScheduler>();

  [[nodiscard]] Outcome call(const std::string& block) const {
    return Sharing(with_hedge(block), state, clock).call();
  }
  [[nodiscard]] ScopeState hedges() const {
    const auto states = state->states("hedge ", clock->now());
    REQUIRE(states.size() == 1);
    return states.front();
  }
};

std::string after_100ms(const char* budget) {
  return R"({"after": "100ms", "budget": )" + std::string(budget) + "}";
}

}  // namespace

TEST_CASE("clients that share a state share samples and budget") {
  const SharedHedges shared;
  CHECK(shared.call(after_100ms("0.5"))->history.hedge_refused == HedgeRefused::HedgeBudget);
  CHECK(shared.call(after_100ms("0.5"))->history.attempts.size() == 2);
  CHECK(shared.call(after_100ms("0.5"))->history.hedge_refused == HedgeRefused::HedgeBudget);

  const auto state = shared.hedges();
  CHECK(state.key == "hedge http://x /default");
  CHECK(state.calls == 3);
  CHECK(state.hedges == 1);
  CHECK(state.samples == 4);
  CHECK(state.until == kNever);
}

TEST_CASE("a file that is read again keeps what was learned") {
  const SharedHedges shared;
  const auto learned = shared.state->hedges("hedge http://x /default", shared.clock->now());
  for (int i = 0; i < 9; ++i) learned->add_sample(100ms, shared.clock->now());
  const auto with = [](const std::string& numbers) {
    return R"({"after": "p50", "budget": 1, "min_samples": )" + numbers + "}";
  };
  CHECK(shared.call(with("20"))->history.hedge_refused == HedgeRefused::Warming);
  const auto hedged = shared.call(with("10"));
  REQUIRE(hedged->history.attempts.size() == 2);
  CHECK(hedged->history.attempts[1].hedge->from == "p50 of 10 samples");
  // Another kind of `after` is no other state.
  CHECK(shared.call(after_100ms("1"))->history.attempts.size() == 2);
  CHECK(shared.hedges().calls == 3);
}

TEST_CASE("what hedges are decided by can be read and forgotten") {
  const SharedHedges shared;
  CHECK(shared.call(after_100ms("1"))->history.attempts.size() == 2);
  const auto key = shared.hedges().key;
  const auto now = shared.clock->now();
  const auto account = shared.state->hedges(key, now);
  account->throttle(now + 2s);
  CHECK(shared.hedges().until == now + 2s);

  CHECK(shared.state->reset(key, now));
  CHECK(shared.hedges().calls == 0);
  CHECK(shared.hedges().samples == 0);
  CHECK_FALSE(account->throttled(now));  // also for who has it already
  CHECK_FALSE(shared.state->reset("hedge http://y /default", now));
  CHECK_FALSE(shared.state->open_circuit(key, now + 1s, now));
}
