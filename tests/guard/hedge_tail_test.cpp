// What hedges do to the slowest of many calls, and what they cost, in virtual time.
#include "hedged_server.hpp"
#include "hedging.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr int kCalls = 200'000;

struct Tail {
  std::vector<Duration> times;  // of the calls, sorted
  double extra = 0;             // hedges for each call

  [[nodiscard]] double ms_at(double quantile) const {
    const auto rank = quantile * static_cast<double>(times.size());
    const auto& time = times[std::min(static_cast<std::size_t>(rank), times.size() - 1)];
    return std::chrono::duration<double, std::milli>(time).count();
  }
};

class Draws {
 public:
  // One of that many is slow.
  Duration one_in(int rare, Duration usual, Duration slow) {
    return std::uniform_int_distribution(1, rare)(random_) == 1 ? slow : usual;
  }
  Duration lognormal(double median_ms, double sigma) {
    std::normal_distribution<double> normal(std::log(median_ms), sigma);
    const std::chrono::duration<double, std::milli> time(std::exp(normal(random_)));
    return Duration(time);
  }

 private:
  std::mt19937_64 random_{20130213};
};

Tail tail_of(const RetryPolicy& policy, const std::function<Duration()>& latency,
             int calls = kCalls) {
  const auto server = std::make_shared<HedgedServer>([&] {
    HedgedReply reply;
    reply.after = latency();
    return reply;
  });
  ClientOptions options;
  options.middlewares = {retry(policy), hedge()};
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = server;
  options.random = fixed_random(0.5);
  Client client(options);
  Tail tail;
  for (int i = 0; i < calls; ++i) {
    tail.times.push_back(history_of(client.get("http://x/")).elapsed);
  }
  std::sort(tail.times.begin(), tail.times.end());
  tail.extra = static_cast<double>(server->sends() - calls) / calls;
  return tail;
}

RetryPolicy hedged_at(double quantile, Duration after = 200ms) {
  auto policy = hedged_policy();
  policy.hedge->quantile = quantile;
  policy.hedge->after = after;
  return policy;
}

bool near(double value, double expected, double part) {
  return std::abs(value - expected) <= part * expected;
}

}  // namespace

TEST_SUITE_BEGIN("large");

TEST_CASE("one slow response of a hundred: hedged, the slowest calls take 30 ms") {
  Draws draws;
  const auto latency = [&] { return draws.one_in(100, 10ms, 1000ms); };
  auto unhedged = hedged_policy();
  unhedged.hedge.reset();
  CHECK(tail_of(unhedged, latency).ms_at(0.999) == 1000);
  const auto hedged = tail_of(hedged_at(0, 20ms), latency);
  CHECK(hedged.ms_at(0.999) == 30);
  CHECK(near(hedged.extra, 0.01, 0.1));
}

TEST_CASE("latencies of a lognormal distribution, hedged at p95") {
  Draws draws;
  const auto latency = [&] { return draws.lognormal(20, 0.8); };
  auto unhedged = hedged_policy();
  unhedged.hedge.reset();
  const auto alone = tail_of(unhedged, latency);
  CHECK(near(alone.ms_at(0.95), 75, 0.04));
  CHECK(near(alone.ms_at(0.99), 129, 0.06));
  CHECK(near(alone.ms_at(0.999), 236, 0.1));
  const auto hedged = tail_of(hedged_at(0.95), latency);
  // The sketch is right within 5 %.
  CHECK(near(hedged.ms_at(0.99), 98, 0.06));
  CHECK(near(hedged.ms_at(0.999), 127, 0.1));
  CHECK(near(hedged.extra, 0.05, 0.15));
}

TEST_CASE("hedged at the median, half of the calls would be sent twice, but for the budget") {
  Draws draws;
  const auto latency = [&] { return draws.lognormal(20, 0.8); };
  auto policy = hedged_at(0, 20ms);
  CHECK(near(tail_of(policy, latency).extra, 0.5, 0.03));
  policy.hedge->budget = 0.05;
  const auto extra = tail_of(policy, latency).extra;
  CHECK(extra <= 0.05);
  CHECK(near(extra, 0.05, 0.03));
}

TEST_CASE("of many calls at once one is slow more often than each, and hedges help") {
  Draws draws;
  const auto shares_of_slow = [](const Tail& tail, int together) {
    const auto slow = std::count_if(tail.times.begin(), tail.times.end(),
                                    [](Duration time) { return time >= 1s; });
    const auto each = static_cast<double>(slow) / static_cast<double>(tail.times.size());
    return 1 - std::pow(1 - each, together);
  };
  auto unhedged = hedged_policy();
  unhedged.hedge.reset();
  const auto one_in_hundred = [&] { return draws.one_in(100, 10ms, 1000ms); };
  CHECK(near(shares_of_slow(tail_of(unhedged, one_in_hundred), 100), 0.63397, 0.06));
  CHECK(shares_of_slow(tail_of(hedged_at(0, 20ms), one_in_hundred), 100) < 0.02);
  const auto one_in_ten_thousand = [&] { return draws.one_in(10'000, 10ms, 1000ms); };
  CHECK(near(shares_of_slow(tail_of(unhedged, one_in_ten_thousand, 400'000), 2000), 0.18128, 0.35));
  CHECK(shares_of_slow(tail_of(hedged_at(0, 20ms), one_in_ten_thousand), 2000) < 0.02);
}

TEST_SUITE_END();
