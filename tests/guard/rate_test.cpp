#include "lib/guard/rate.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <random>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {

RatePolicy rate_of(std::int64_t requests, Duration per, std::int64_t burst) {
  RatePolicy policy;
  policy.requests = requests;
  policy.per = per;
  policy.burst = burst;
  return policy;
}

Time at(Duration since) { return Time(1h) + since; }

// The time until `count` tokens are there; takes them if that is now.
Duration ask(Rate& rate, const RatePolicy& policy, Time now, std::int64_t count = 1) {
  const auto ready = rate.ready_at(policy, count);
  if (ready == kNever) return kForever;
  if (ready > now) return ready - now;
  rate.take(policy, now, count);
  return 0s;
}

}  // namespace

TEST_CASE("tokens come back one after the other") {
  const auto policy = rate_of(1, 1s, 5);
  Rate rate;
  CHECK(ask(rate, policy, at(0s), 6) == kForever);  // more than a burst never comes together
  for (std::int64_t left = 4; left >= 0; --left) {
    CHECK(ask(rate, policy, at(0s)) == 0s);
    CHECK(rate.left(policy, at(0s)) == left);
  }
  CHECK(ask(rate, policy, at(0s)) == 1s);
  struct Row {
    Duration now, wait;
    std::int64_t count, left;
  };
  for (const auto& row : {Row{3s, 0s, 1, 2}, Row{3100ms, 0s, 1, 1}, Row{4s, 0s, 1, 1},
                          Row{8s, 0s, 1, 4}, Row{9500ms, 0s, 1, 4}, Row{9500ms, 0s, 0, 4},
                          Row{9500ms, 0s, 2, 2}, Row{9500ms, 3s, 5, 2}}) {
    CAPTURE(row.now.count());
    CAPTURE(row.count);
    CHECK(ask(rate, policy, at(row.now), row.count) == row.wait);
    CHECK(rate.left(policy, at(row.now)) == row.left);
  }
}

TEST_CASE("a refused send takes no token") {
  const auto policy = rate_of(10, 1s, 5);
  Rate rate;
  for (int sent = 0; sent < 5; ++sent) CHECK(ask(rate, policy, at(0s)) == 0s);
  CHECK(ask(rate, policy, at(0s)) == 100ms);
  CHECK(ask(rate, policy, at(0s)) == 100ms);
  CHECK(ask(rate, policy, at(50ms)) == 50ms);
  CHECK(ask(rate, policy, at(100ms)) == 0s);
  CHECK(ask(rate, policy, at(350ms)) == 0s);
  CHECK(ask(rate, policy, at(350ms)) == 0s);
  CHECK(ask(rate, policy, at(350ms)) == 50ms);
}

TEST_CASE("in any second there are at most rate and burst") {
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (int run = 0; run < 50; ++run) {
    const auto policy = rate_of(1 + random() % 100, 1s, 1 + random() % 20);
    Rate rate;
    std::deque<Time> sent;
    auto now = at(0s);
    for (int step = 0; step < 500; ++step) {
      now += std::chrono::microseconds(random() % 20'000);
      if (ask(rate, policy, now) != 0s) continue;
      sent.push_back(now);
      while (sent.front() <= now - 1s) sent.pop_front();
      REQUIRE(sent.size() <= static_cast<std::size_t>(policy.requests + policy.burst));
    }
  }
}
