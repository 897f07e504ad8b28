#include "lib/core/guard/rate.hpp"

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

Time time_at(Duration since) { return Time(1h) + since; }

// The time until there is a token; takes it if that is now.
Duration ask(Rate& rate, const RatePolicy& policy, Time now) {
  const auto ready = rate.ready_at(policy);
  if (ready > now) return ready - now;
  rate.take(policy, now);
  return 0s;
}

// How many sends may go out at once. By value: takes nothing.
int left(Rate rate, const RatePolicy& policy, Time now) {
  int count = 0;
  while (ask(rate, policy, now) == 0s) ++count;
  return count;
}

}  // namespace

TEST_CASE("tokens come back one after the other") {
  const auto policy = rate_of(1, 1s, 5);
  Rate rate;
  for (int tokens = 4; tokens >= 0; --tokens) {
    CHECK(ask(rate, policy, time_at(0s)) == 0s);
    CHECK(left(rate, policy, time_at(0s)) == tokens);
  }
  CHECK(ask(rate, policy, time_at(0s)) == 1s);
  struct Row {
    Duration now, wait;
    int left;
  };
  for (const auto& row : {Row{3s, 0s, 2}, Row{3100ms, 0s, 1}, Row{4s, 0s, 1}, Row{8s, 0s, 4},
                          Row{9500ms, 0s, 4}, Row{9500ms, 0s, 3}, Row{9500ms, 0s, 2}}) {
    CAPTURE(row.now.count());
    CHECK(ask(rate, policy, time_at(row.now)) == row.wait);
    CHECK(left(rate, policy, time_at(row.now)) == row.left);
  }
}

TEST_CASE("a refused send takes no token") {
  const auto policy = rate_of(10, 1s, 5);
  Rate rate;
  for (int sent = 0; sent < 5; ++sent) CHECK(ask(rate, policy, time_at(0s)) == 0s);
  CHECK(ask(rate, policy, time_at(0s)) == 100ms);
  CHECK(ask(rate, policy, time_at(0s)) == 100ms);
  CHECK(ask(rate, policy, time_at(50ms)) == 50ms);
  CHECK(ask(rate, policy, time_at(100ms)) == 0s);
  CHECK(ask(rate, policy, time_at(350ms)) == 0s);
  CHECK(ask(rate, policy, time_at(350ms)) == 0s);
  CHECK(ask(rate, policy, time_at(350ms)) == 50ms);
}

TEST_CASE("costs: a send takes as many tokens as it costs, from all rates or none") {
  auto policy = rate_of(2, 1s, 2);
  policy.further = {RatePolicy::of_cost(1'000, 10s)};
  Rate rate;
  const auto ready_in = [&](std::int64_t cost) {
    return rate.ready_at(policy, cost) - time_at(0s);
  };
  rate.take(policy, time_at(0s), 900);
  CHECK(ready_in(100) <= 0s);
  CHECK(ready_in(101) == 10ms);
  CHECK(ready_in(1'000) == 9s);
  rate.take(policy, time_at(0s), 0);
  CHECK(ready_in(0) == 500ms);  // requests
  CHECK(ready_in(200) == 1s);   // tokens
  CHECK(rate.full_at() == time_at(9s));
  CHECK_FALSE(rate.idle(time_at(8s)));
  CHECK(rate.idle(time_at(9s)));
  CHECK(rate.ready_at(policy, 100, {3, 300}) == time_at(3s));
  CHECK(rate.ready_at(policy, 0, {3, 0}) == time_at(2s));

  // A reloaded policy may have other rates.
  policy.further.clear();
  CHECK(ready_in(1'000) == 500ms);
  policy.further = {RatePolicy::of_cost(1'000, 10s), rate_of(1, 1h, 1)};
  rate.take(policy, time_at(9s), 1);
  CHECK(ready_in(1) == 9s + 1h);
}

TEST_CASE("costs: the time for a cost is exact, and never overflows") {
  struct Row {
    std::int64_t cost;
    Duration per;
    std::int64_t amount;
    Duration time;
  };
  for (const auto& row : {Row{10'000, 1min, 1, 6ms}, Row{10'000, 1min, 10'000, 1min},
                          Row{7'000'000, 1min, 7'000'000, 1min}, Row{2, 3ns, 1, 2ns},
                          Row{1, 8760h, 1'000'000'000, Duration(4'000'000'000'000'000'000)}}) {
    CHECK(Rate::time_for(RatePolicy::of_cost(row.cost, row.per), row.amount) == row.time);
  }
  CHECK(Rate::time_for(rate_of(1'000'000'000, 1s, 1), 10) == 10ns);
  CHECK(Rate::time_for(rate_of(7, 1s, 1), 7) == 999'999'994ns);  // whole nanoseconds for each
  const auto slow = rate_of(1, 8760h, 1'000'000'000);
  Rate rate;
  for (int sent = 0; sent < 3; ++sent) CHECK(ask(rate, slow, time_at(0s)) == 0s);
}

TEST_CASE("in any second there are at most rate and burst") {
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (int run = 0; run < 50; ++run) {
    const auto policy = rate_of(1 + random() % 100, 1s, 1 + random() % 20);
    Rate rate;
    std::deque<Time> sent;
    auto now = time_at(0s);
    for (int step = 0; step < 500; ++step) {
      now += std::chrono::microseconds(random() % 20'000);
      if (ask(rate, policy, now) != 0s) continue;
      sent.push_back(now);
      while (sent.front() <= now - 1s) sent.pop_front();
      REQUIRE(sent.size() <= static_cast<std::size_t>(policy.requests + policy.burst));
    }
  }
}
