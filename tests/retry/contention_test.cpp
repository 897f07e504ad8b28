// What jitter is for: clients that write to the same record with optimistic locking, as in the
// model of aws-samples/aws-arch-backoff-simulator. A client reads the version and writes with it;
// of those that read the same version one succeeds, and the others wait and begin again.
#include <httpretry/retry/backoff.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <queue>
#include <random>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using httpretry::Backoff;
using httpretry::Duration;
using Jitter = Backoff::Jitter;
using Kind = Backoff::Kind;

namespace {

struct Event {
  double ms;
  std::size_t client;
  bool write;
  int version;  // that a write is based on
  friend bool operator<(const Event& a, const Event& b) { return a.ms > b.ms; }
};

struct Cost {
  double ms = 0;     // until the last client is done
  double calls = 0;  // writes, those that came too late included
};

Cost contend(const Backoff& backoff, std::size_t clients, std::mt19937_64& engine) {
  std::normal_distribution<double> distribution(10, 2);
  std::uniform_real_distribution<double> chance(0, 1);
  const auto hop = [&] { return std::abs(distribution(engine)); };
  std::priority_queue<Event> events;
  for (std::size_t client = 0; client < clients; ++client) events.push({hop(), client, false, 0});
  std::vector<int> failures(clients);
  std::vector<Duration> previous(clients);
  int version = 0;
  Cost cost;
  while (!events.empty()) {
    const auto event = events.top();
    events.pop();
    if (!event.write) {
      events.push({event.ms + hop() + hop(), event.client, true, version});
      continue;
    }
    ++cost.calls;
    const auto answered = event.ms + hop();
    if (event.version == version) {
      ++version;
      cost.ms = std::max(cost.ms, answered);
      continue;
    }
    auto& last = previous[event.client];
    last = delay(backoff, ++failures[event.client], last, chance(engine));
    const auto wait = static_cast<double>(last.count()) / 1e6;
    events.push({answered + wait + hop(), event.client, false, 0});
  }
  return cost;
}

// The base is 5 ms, and doubled already before the first wait.
Backoff of_jitter(Jitter jitter) {
  Backoff backoff;
  backoff.initial = 10ms;
  backoff.max_interval = 2s;
  backoff.jitter = jitter;
  return backoff;
}

}  // namespace

// The figures of 60 runs of that model; ours are those of another 60, so that the difference of the
// means is within three of its standard errors.
TEST_CASE("under contention each jitter costs what its inventors found") {
  Backoff none;
  none.kind = Kind::None;
  Backoff decorrelated;
  decorrelated.kind = Kind::Decorrelated;
  decorrelated.initial = 5ms;
  decorrelated.multiplier = 3;
  decorrelated.max_interval = 2s;
  struct Row {
    const char* name;
    Backoff backoff;
    std::size_t clients;
    double ms;
    double ms_deviation;
    double calls;
    double calls_deviation;
  };
  const std::vector<Row> rows = {
      {"none", none, 10, 380.1, 29.8, 51.0, 3.9},
      {"exponential", of_jitter(Jitter::None), 10, 3284.2, 1405.9, 50.0, 4.7},
      {"equal", of_jitter(Jitter::Equal), 10, 692.1, 131.3, 42.1, 2.4},
      {"full", of_jitter(Jitter::Full), 10, 496.0, 115.4, 39.4, 1.8},
      {"decorrelated", decorrelated, 10, 435.1, 74.9, 37.3, 2.2},
      {"none", none, 50, 1136.9, 41.2, 690.1, 16.3},
      {"exponential", of_jitter(Jitter::None), 50, 36108.5, 3092.6, 622.8, 25.6},
      {"equal", of_jitter(Jitter::Equal), 50, 4261.7, 486.5, 347.7, 4.9},
      {"full", of_jitter(Jitter::Full), 50, 2886.3, 573.4, 333.3, 3.8},
      {"decorrelated", decorrelated, 50, 2251.4, 490.8, 376.4, 12.0}};
  constexpr int kRuns = 60;
  std::mt19937_64 engine(20150304);
  for (const auto& row : rows) {
    CAPTURE(std::string(row.name));
    CAPTURE(row.clients);
    Cost mean;
    for (int run = 0; run < kRuns; ++run) {
      const auto cost = contend(row.backoff, row.clients, engine);
      mean.ms += cost.ms / kRuns;
      mean.calls += cost.calls / kRuns;
    }
    const auto errors = 3 * std::sqrt(2.0 / kRuns);
    CHECK(std::abs(mean.ms - row.ms) < errors * row.ms_deviation);
    CHECK(std::abs(mean.calls - row.calls) < errors * row.calls_deviation);
  }
}
