// Hedges and faults together: what the histories tell is what the server has seen.
#include "hedged_server.hpp"
#include "hedging.hpp"
#include "tests/rounds.hpp"

#include <httpretry/guard/guards.hpp>

#include <doctest/doctest.h>

#include <random>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr int kTogether = 50;

class Faults {
 public:
  HedgedReply operator()() {
    HedgedReply reply;
    reply.after = std::chrono::microseconds(std::uniform_int_distribution(1'000, 20'000)(random_));
    switch (std::uniform_int_distribution(0, 19)(random_)) {
      case 0:
      case 1: reply.after = 300ms; break;
      case 2: reply.after = 1h; break;
      case 3: reply.outcome = Response(503); break;
      case 4: reply.outcome = Response(404); break;
      case 5: reply.outcome = Error(Errc::Receive, "reset"); break;
      case 6:
        reply.outcome = Error(Errc::Connect, "refused");
        reply.executed = false;
        break;
      case 7: {
        Response throttled(429);
        throttled.headers.add("Retry-After", "1");
        reply.outcome = throttled;
        reply.executed = false;
        break;
      }
      default: break;
    }
    return reply;
  }

 private:
  std::mt19937_64 random_{7};
};

class CountingObserver final : public Observer {
 public:
  void hedge_started(const Call& /*call*/, const Request& /*request*/, int /*number*/,
                     Duration /*after*/) noexcept override {
    ++hedges;
  }
  void attempt_started(const Call& /*call*/, const Request& /*request*/,
                       int /*number*/) noexcept override {
    ++started;
  }
  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& /*attempt*/) noexcept override {
    ++ended;
  }

  std::int64_t hedges = 0;
  std::int64_t started = 0;
  std::int64_t ended = 0;
};

struct Totals {
  std::int64_t sends = 0;
  std::int64_t attempts = 0;
  std::int64_t hedges = 0;
  std::int64_t lost = 0;
};

Task<> one_call(Client& client, HedgedServer& server, int number, Totals& totals) {
  static const std::vector<std::string> kMethods{"GET", "PUT", "POST", "DELETE"};
  const auto& method = kMethods[static_cast<std::size_t>(number) % kMethods.size()];
  const auto name = std::to_string(number);
  Request request(method, "http://x/");
  request.set_header("X-Call", name);
  Outcome outcome = co_await client.co_send(std::move(request));
  const auto& entry = server.entry(name);
  CHECK(entry.alive == 0);
  if (method == "POST") CHECK_FALSE(entry.sent_beside);
  const auto& attempts = history_of(outcome).attempts;
  int sends = 0;
  int won = 0;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    CHECK(attempts[i].number == static_cast<int>(i) + 1);
    sends += attempts[i].wire_sends;
    totals.hedges += attempts[i].hedge ? 1 : 0;
    totals.lost += attempts[i].race == Race::Lost ? 1 : 0;
    won += attempts[i].race == Race::Won ? 1 : 0;
  }
  CHECK(sends == entry.sends);
  CHECK(attempts.size() <= 4);
  CHECK(won <= 1);
  totals.sends += sends;
  totals.attempts += static_cast<std::int64_t>(attempts.size());
  server.forget(name);
}

void run_calls(int number, std::vector<MiddlewarePtr> chain, int max_in_flight) {
  const auto clock = std::make_shared<ManualScheduler>();
  const auto server = std::make_shared<HedgedServer>(Faults());
  const auto counted = std::make_shared<CountingObserver>();
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.scheduler = clock;
  options.transport = server;
  options.observers = {counted};
  options.random = seeded_random(3);
  options.max_in_flight = max_in_flight;
  Client client(options);
  Totals totals;
  for (int i = 0; i < number; i += kTogether) {
    std::vector<Task<>> calls;
    for (int n = i; n < i + kTogether; ++n) {
      calls.push_back(one_call(client, *server, n, totals));
    }
    clock->run(when_all(std::move(calls)));
    REQUIRE(clock->sleeping() == 0);  // nothing is left behind
  }
  CHECK(totals.sends == server->sends());
  CHECK(counted->started == totals.attempts);
  CHECK(counted->ended == totals.attempts);
  CHECK(counted->hedges == totals.hedges);
  CHECK(totals.hedges > number / 50);
  CHECK(totals.lost >= totals.hedges / 2);
}

RetryPolicy faulty_policy() {
  auto policy = hedged_policy();
  policy.hedge->after = 50ms;
  policy.hedge->max_hedges = 2;
  policy.hedge->methods.clear();
  policy.attempt_timeout = 1s;
  return policy;
}

void run_hedged_calls(int number) {
  run_calls(number, {redirect(), retry(faulty_policy()), hedge()}, 0);
}

void run_limited_calls(int number) {
  auto policy = faulty_policy();
  policy.max_elapsed_time = 1h;
  policy.guards.concurrency.emplace();
  policy.guards.concurrency->max = 40;
  policy.guards.rate.emplace();
  policy.guards.rate->requests = 400;
  policy.guards.rate->burst = 20;
  run_calls(number, {redirect(), retry(policy), hedge(), guards()}, 45);
}

}  // namespace

TEST_CASE("histories, observers and the server count the same sends, whatever fails") {
  run_hedged_calls(rounds(20'000));
}

TEST_CASE("they do where guards and the limits of the client hold sends back, too") {
  run_limited_calls(rounds(20'000));
}

TEST_CASE("they do so for a hundred thousand calls" * doctest::test_suite("large")) {
  run_hedged_calls(100'000);
  run_limited_calls(100'000);
}
