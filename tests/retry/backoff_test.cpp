#include <httpretry/retry/backoff.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/retry/random.hpp"

using namespace std::chrono_literals;
using httpretry::Backoff;
using httpretry::delay;
using httpretry::delay_range;
using httpretry::Duration;
using httpretry::kForever;
using httpretry_test::Random;
using Jitter = Backoff::Jitter;
using Kind = Backoff::Kind;

namespace {

Backoff exponential(Duration initial, double multiplier, Duration max, Jitter jitter) {
  Backoff backoff;
  backoff.initial = initial;
  backoff.multiplier = multiplier;
  backoff.max_interval = max;
  backoff.jitter = jitter;
  return backoff;
}

Backoff of_kind(Kind kind, Duration initial) {
  Backoff backoff;
  backoff.kind = kind;
  backoff.initial = initial;
  return backoff;
}

Duration seconds(double count) { return Duration(std::llround(count * 1e9)); }

// The least and the most for retry 1, 2, ... agree with the pairs, to the nanosecond.
struct Ends {
  Duration least;
  Duration most;
};
void check_ends(const Backoff& backoff, const std::vector<Ends>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto retry = static_cast<int>(i) + 1;
    CAPTURE(retry);
    CHECK(std::chrono::abs(delay(backoff, retry, {}, 0) - expected[i].least) <= 1ns);
    CHECK(std::chrono::abs(delay(backoff, retry, {}, 1) - expected[i].most) <= 1ns);
  }
}

// 2 000 draws fall evenly into 20 equal parts of [low, high]: chi-square with 19 degrees of
// freedom is below 43.8 in 999 of 1 000 samples; the seed is fixed.
void check_uniform(const Backoff& backoff, int retry, Duration previous, Duration low,
                   Duration high) {
  Random random(20150304);
  std::vector<int> parts(20);
  for (int i = 0; i < 2000; ++i) {
    const auto wait = delay(backoff, retry, previous, random.unit());
    CHECK(wait >= low);
    CHECK(wait <= high);
    const auto part =
        static_cast<double>((wait - low).count()) / static_cast<double>((high - low).count()) * 20;
    ++parts[std::min<std::size_t>(static_cast<std::size_t>(part), 19)];
  }
  double chi_square = 0;
  for (const auto count : parts) chi_square += (count - 100.0) * (count - 100.0) / 100.0;
  CAPTURE(random.seed());
  CHECK(chi_square < 43.8);
}

}  // namespace

TEST_CASE("the shortest and the longest waits are exact") {
  CHECK(delay(of_kind(Kind::Constant, 1ns), 1, {}, 0.5) == 1ns);
  CHECK(delay(of_kind(Kind::None, 1s), 1, {}, 0.5) == 0ns);
  CHECK(delay(exponential(10ms, 2, 2s, Jitter::Full), 1, {}, 0) == 0ns);
  CHECK(delay(exponential(10ms, 2, 2s, Jitter::Full), 1, {}, 1) == 10ms);
  auto binary = of_kind(Kind::TruncatedBinary, 0s);
  binary.max_interval = 8s;
  binary.steps = 1;
  CHECK(delay(binary, 1, {}, 0) == 0ns);
  CHECK(delay(binary, 1, {}, 1) == 8s);
  binary.steps = 3;
  CHECK(delay(binary, 1, {}, 1) == 2s);
  CHECK(delay(binary, 3, {}, 1) == 8s);
  CHECK(delay(binary, 4, {}, 1) == 8s);
  auto slots = of_kind(Kind::Slots, 1ns);
  slots.steps = 0;
  CHECK(delay(slots, 9, {}, 1) == 0ns);
  slots.steps = 60;  // more than 2^52 slots cannot be counted
  CHECK(delay(slots, 0, {}, 1) == 0ns);
  CHECK(delay(slots, 1, {}, 1) == 1ns);
  CHECK(delay(slots, 70, {}, 1) == 4'503'599'627'370'495ns);
}

// AWS, "Error retries and exponential backoff": 2^n * 100 ms, capped.
TEST_CASE("the AWS General Reference doubles 100 ms up to the cap") {
  const auto backoff = exponential(100ms, 2, 10s, Jitter::None);
  const std::vector<Duration> expected = {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 10s};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(delay(backoff, static_cast<int>(i) + 1, {}, 0.9) == expected[i]);
  }
}

// google-http-java-client's ExponentialBackOff, in nanoseconds as cenkalti/backoff has it (there,
// each step is cut to whole nanoseconds: up to 1 ns less).
TEST_CASE("Google's intervals grow by half up to a minute") {
  auto backoff = exponential(500ms, 1.5, 60s, Jitter::None);
  const std::vector<double> expected = {
      0.5,        0.75,         1.125,        1.6875,      2.53125,      3.796875, 5.6953125,
      8.54296875, 12.814453125, 19.221679687, 28.83251953, 43.248779295, 60,       60};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto wait = delay(backoff, static_cast<int>(i) + 1, {}, 0.3);
    CAPTURE(i);
    CHECK(std::chrono::abs(wait - seconds(expected[i])) <= 2ns);
  }
  backoff.jitter = Jitter::Proportional;
  check_ends(backoff, {{250ms, 750ms}, {375ms, 1125ms}, {562500us, 1687500us}});
  // The cap is on the interval: the longest real wait is half as long again.
  CHECK(delay(backoff, 13, {}, 1) == 90s);
  CHECK(delay(backoff, 13, {}, 0) == 30s);
}

// The memo of google-http-java-client 1.15 prints them with two digits.
TEST_CASE("the nominal intervals of google-http-client 1.15") {
  const auto backoff = exponential(500ms, 1.5, 60s, Jitter::None);
  const std::vector<double> printed = {.50, .75, 1.12, 1.69, 2.53, 3.80, 5.70, 8.54, 12.81};
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const auto wait = delay(backoff, static_cast<int>(i) + 1, {}, 0);
    CHECK(std::abs(static_cast<double>(wait.count()) / 1e9 - printed[i]) <= 0.0051);
  }
}

// aws-arch-backoff-simulator, base 5 ms, cap 2000 ms; there n = 1 is already doubled once.
TEST_CASE("the three jitters of the AWS architecture blog") {
  auto full = exponential(10ms, 2, 2s, Jitter::Full);
  check_ends(full, {{0s, 10ms},
                    {0s, 20ms},
                    {0s, 40ms},
                    {0s, 80ms},
                    {0s, 160ms},
                    {0s, 320ms},
                    {0s, 640ms},
                    {0s, 1280ms},
                    {0s, 2s},
                    {0s, 2s}});
  auto equal = exponential(10ms, 2, 2s, Jitter::Equal);
  check_ends(equal, {{5ms, 10ms},
                     {10ms, 20ms},
                     {20ms, 40ms},
                     {40ms, 80ms},
                     {80ms, 160ms},
                     {160ms, 320ms},
                     {320ms, 640ms},
                     {640ms, 1280ms},
                     {1s, 2s},
                     {1s, 2s}});

  auto decorrelated = of_kind(Kind::Decorrelated, 1s);
  decorrelated.multiplier = 3;
  decorrelated.max_interval = 10s;
  CHECK(delay(decorrelated, 1, {}, 0) == 1s);
  CHECK(delay(decorrelated, 1, {}, 1) == 3s);  // previous starts at initial
  CHECK(delay(decorrelated, 2, 3s, 1) == 9s);
  CHECK(delay(decorrelated, 3, 9s, 1) == 10s);
  CHECK(delay(decorrelated, 3, 9s, 0) == 1s);
}

TEST_CASE("truncated binary backoff reaches its ceiling at the tenth wait") {
  auto backoff = of_kind(Kind::TruncatedBinary, {});
  backoff.max_interval = 10s;
  backoff.steps = 10;
  CHECK(delay(backoff, 1, {}, 1) == 19531250ns);  // 10 s / 2^9
  CHECK(delay(backoff, 2, {}, 1) == 39062500ns);
  CHECK(delay(backoff, 10, {}, 1) == 10s);
  CHECK(delay(backoff, 1000, {}, 1) == 10s);
  CHECK(delay(backoff, 10, {}, 0) == 0s);
}

// IEEE 802.3: 51.2 us slots at 10 Mbit/s.
TEST_CASE("Ethernet draws whole slots and gives up after sixteen failures") {
  auto backoff = of_kind(Kind::Slots, 51200ns);
  struct Row {
    int collisions;
    int most;
  };
  const std::vector<Row> rows = {{1, 1},     {2, 3},     {3, 7},    {9, 511},
                                 {10, 1023}, {11, 1023}, {15, 1023}};
  for (const auto& row : rows) {
    const auto collisions = row.collisions;
    const auto most = row.most;
    CAPTURE(collisions);
    CHECK(delay(backoff, collisions, {}, 0) == 0ns);
    CHECK(delay(backoff, collisions, {}, 0.9999999) == most * 51200ns);
    CHECK(delay_range(backoff, collisions).mean == most * 25600ns);
    CHECK_FALSE(gives_up(backoff, collisions));
  }
  CHECK(delay(backoff, 2, {}, 0.49) == 51200ns);
  CHECK(gives_up(backoff, 16));
}

TEST_CASE("the Drive pages add up to a second") {
  auto today = exponential(1s, 2, 64s, Jitter::Additive);
  today.add = 1s;
  today.cap_after_jitter = true;
  check_ends(
      today,
      {{1s, 2s}, {2s, 3s}, {4s, 5s}, {8s, 9s}, {16s, 17s}, {32s, 33s}, {64s, 64s}, {64s, 64s}});
  auto older = exponential(1ms, 2, kForever, Jitter::Additive);
  older.add = 1s;
  check_ends(older, {{1ms, 1001ms}, {2ms, 1002ms}, {4ms, 1004ms}, {8ms, 1008ms}, {16ms, 1016ms}});
}

// gRPC A6, azure-core, openai-python, stripe-go.
TEST_CASE("a range multiplies the interval") {
  auto grpc = exponential(100ms, 2, 1s, Jitter::Range);
  grpc.low = 0.8;
  grpc.high = 1.2;
  check_ends(grpc,
             {{80ms, 120ms}, {160ms, 240ms}, {320ms, 480ms}, {640ms, 960ms}, {800ms, 1200ms}});
  auto azure = exponential(800ms, 2, 60s, Jitter::Range);
  azure.low = 0.8;
  azure.high = 1.3;
  azure.cap_after_jitter = true;
  check_ends(azure, {{640ms, 1040ms}, {1280ms, 2080ms}});
  CHECK(delay(azure, 20, {}, 0) == 60s);
  azure.initial = 1s;
  azure.max_interval = 120s;
  for (const auto retry : {1, 2, 3}) {
    CHECK(delay(azure, retry, {}, 0.4) == seconds(std::exp2(retry - 1)));  // a factor of 1
  }
  auto openai = exponential(500ms, 2, 8s, Jitter::Range);
  openai.low = 0.75;
  openai.high = 1;
  check_ends(openai, {{375ms, 500ms}, {750ms, 1s}, {1500ms, 2s}, {3s, 4s}, {6s, 8s}, {6s, 8s}});
  CHECK(delay(openai, 1100, {}, 1) == 8s);
  auto stripe = exponential(1s, 2.5, 5s, Jitter::Range);
  stripe.low = 0.75;
  stripe.high = 1;
  check_ends(stripe, {{750ms, 1s}, {1875ms, 2500ms}, {3750ms, 5s}, {3750ms, 5s}});

  // Polly and go-retry: a quarter more or less of a constant.
  auto quarter = exponential(1s, 1, kForever, Jitter::Range);
  quarter.low = 0.75;
  quarter.high = 1.25;
  check_ends(quarter, {{750ms, 1250ms}, {750ms, 1250ms}});
  CHECK(delay(quarter, 1, {}, 0.4) == 950ms);
  CHECK(delay(quarter, 1, {}, 0.6) == 1050ms);
  // axios-retry: up to a fifth more.
  auto fifth = exponential(200ms, 2, kForever, Jitter::Range);
  fifth.high = 1.2;
  check_ends(fifth, {{200ms, 240ms}, {400ms, 480ms}, {800ms, 960ms}});
  // tower's ExponentialBackoff, jitter 0.99: never over its cap.
  auto tower = exponential(50ms, 2, 150ms, Jitter::Range);
  tower.high = 1.99;
  tower.cap_after_jitter = true;
  check_ends(tower, {{50ms, 99500us}, {100ms, 150ms}, {150ms, 150ms}});
}

// google-http-java-client's testBackOff, resilience4j's randomized interval (there cut to whole
// milliseconds), go-retry's WithJitterPercent.
TEST_CASE("a proportion is more or less of the interval") {
  auto google = exponential(500ms, 2, 5s, Jitter::Proportional);
  google.randomization = 0.1;
  check_ends(google, {{450ms, 550ms},
                      {900ms, 1100ms},
                      {1800ms, 2200ms},
                      {3600ms, 4400ms},
                      {4500ms, 5500ms},
                      {4500ms, 5500ms}});
  CHECK(delay(google, 10, {}, 1) == 5500ms);
  const auto half = exponential(500ms, 1.5, kForever, Jitter::Proportional);
  check_ends(half, {{250ms, 750ms}, {375ms, 1125ms}, {562500us, 1687500us}});
  auto percent = exponential(1s, 1, kForever, Jitter::Proportional);
  percent.randomization = 0.05;
  check_ends(percent, {{950ms, 1050ms}});
}

// got, stamina, urllib3 (whose first wait of 0 is not ours: its second error is our first retry).
TEST_CASE("an addition comes before the cap or after it") {
  auto got = exponential(1s, 2, 3s, Jitter::Additive);
  got.add = 100ms;
  check_ends(got, {{1s, 1100ms}, {2s, 2100ms}, {3s, 3100ms}});
  auto stamina = exponential(100ms, 2, 5s, Jitter::Additive);
  stamina.add = 1s;
  stamina.cap_after_jitter = true;
  check_ends(stamina, {{100ms, 1100ms},
                       {200ms, 1200ms},
                       {400ms, 1400ms},
                       {800ms, 1800ms},
                       {1600ms, 2600ms},
                       {3200ms, 4200ms},
                       {5s, 5s}});
  auto urllib3 = exponential(400ms, 2, 1s, Jitter::Additive);
  urllib3.add = 400ms;
  urllib3.cap_after_jitter = true;
  check_ends(urllib3, {{400ms, 800ms}, {800ms, 1s}, {1s, 1s}});
  urllib3.add = 0s;
  check_ends(urllib3, {{400ms, 400ms}, {800ms, 800ms}, {1s, 1s}, {1s, 1s}});
}

// botocore's legacy mode, gax-go (in nanoseconds), aws-sdk-cpp's LegacyRetryImpl (jitter before the
// cap), tenacity's wait_random_exponential.
TEST_CASE("full jitter under several caps") {
  check_ends(exponential(1s, 2, kForever, Jitter::Full), {{0s, 1s}, {0s, 2s}, {0s, 4s}, {0s, 8s}});
  const std::vector<Duration> most = {1ns, 2ns, 4ns, 8ns, 16ns, 20ns, 20ns, 20ns, 20ns, 20ns};
  for (std::size_t i = 0; i < most.size(); ++i) {
    const auto gax = exponential(1ns, 2, 20ns, Jitter::Full);
    CHECK(delay(gax, static_cast<int>(i) + 1, {}, 1) == most[i]);
  }
  auto legacy = exponential(999ms, 2, 20s, Jitter::Full);
  legacy.cap_after_jitter = true;
  check_ends(
      legacy,
      {{0s, 999ms}, {0s, 1998ms}, {0s, 3996ms}, {0s, 7992ms}, {0s, 15984ms}, {0s, 20s}, {0s, 20s}});
  CHECK(delay(exponential(1s, 2, 60s, Jitter::Full), 1'000'000, {}, 1) == 60s);
}

// google-cloud-cpp draws from [1 s, 2 s), [2 s, 4 s) and so on up to [150 s, 300 s).
TEST_CASE("a range that slides is equal jitter") {
  check_ends(exponential(2s, 2, 300s, Jitter::Equal), {{1s, 2s},
                                                       {2s, 4s},
                                                       {4s, 8s},
                                                       {8s, 16s},
                                                       {16s, 32s},
                                                       {32s, 64s},
                                                       {64s, 128s},
                                                       {128s, 256s},
                                                       {150s, 300s},
                                                       {150s, 300s}});
}

// No chance has a part in these.
TEST_CASE("other published sequences") {
  struct Row {
    const char* client;
    Backoff backoff;
    std::vector<Duration> waits;
    int late = 0;  // a retry far behind the sequence, which still waits its last
  };
  const auto doubled = [](Duration initial, Duration max) {
    return exponential(initial, 2, max, Jitter::None);
  };
  auto linear = of_kind(Kind::Linear, 1s);
  linear.increment = 1s;
  auto wget2 = of_kind(Kind::Linear, 10s);
  wget2.increment = 10s;
  const std::vector<Row> rows = {
      {"Polly, linear", linear, {1s, 2s, 3s}},
      {"Polly, exponential", doubled(1s, kForever), {1s, 2s, 4s}},
      {"wget2", wget2, {10s, 20s, 30s}},
      {"curl",
       doubled(1s, 10min),
       {1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 512s, 600s, 600s},
       1000},
      {"go-retryablehttp",
       doubled(1s, 300s),
       {1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s},
       129},
      {"undici", doubled(500ms, 30s), {500ms, 1s, 2s, 4s, 8s, 16s, 30s, 30s}, 1000},
      {"ky", doubled(300ms, kForever), {300ms, 600ms, 1200ms, 2400ms}},
      {"folly", doubled(100ms, 1s), {100ms, 200ms, 400ms, 800ms, 1s}, 2000},
      {"aws-c-io", doubled(500ms, 20s), {500ms, 1s, 2s, 4s, 8s, 16s, 20s}, 65},
      {"google-http-java-client",
       doubled(500ms, 5s),
       {500ms, 1s, 2s, 4s, 5s, 5s, 5s, 5s, 5s, 5s},
       1000}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.client));
    for (std::size_t i = 0; i < row.waits.size(); ++i) {
      CHECK(delay(row.backoff, static_cast<int>(i) + 1, {}, 0.5) == row.waits[i]);
    }
    if (row.late > 0) CHECK(delay(row.backoff, row.late, {}, 0.5) == row.waits.back());
  }
  CHECK(delay(of_kind(Kind::Constant, 1s), 77, {}, 0.5) == 1s);
  CHECK(delay(of_kind(Kind::None, 1s), 3, {}, 0.5) == 0s);
  // The guide of SimpleDB.
  check_ends(exponential(400ms, 4, kForever, Jitter::Full),
             {{0s, 400ms}, {0s, 1600ms}, {0s, 6400ms}, {0s, 25600ms}, {0s, 102400ms}});
}

// sethvargo/go-retry, cenkalti/backoff, google-http-java-client, Polly.
TEST_CASE("arithmetic saturates") {
  const Duration century(360000000000000000);
  const auto huge = exponential(century, 2, kForever, Jitter::None);
  for (int retry = 1; retry <= 5; ++retry) {
    CHECK(delay(huge, retry, {}, 0) == century * (1 << (retry - 1)));
  }
  for (int retry = 6; retry <= 10; ++retry) CHECK(delay(huge, retry, {}, 0) == kForever);
  const std::chrono::milliseconds longest(2147483647);
  CHECK(delay(exponential(1073741823ms, 2.1, longest, Jitter::None), 2, {}, 0) == longest);
  CHECK(delay(exponential(Duration(4611686018427387903), 2.1, kForever, Jitter::None), 2, {}, 0) ==
        kForever);
  const auto day = exponential(24h, 2, kForever, Jitter::None);
  CHECK(delay(day, 1000, {}, 0) == kForever);
  auto capped = day;
  capped.max_interval = 48h;
  CHECK(delay(capped, 1000, {}, 0) == 48h);
  CHECK(delay(of_kind(Kind::Constant, 8760h), 1, {}, 0) == 8760h);
  CHECK(delay(exponential(1ns, 1, kForever, Jitter::None), 1, {}, 0) == 1ns);
}

// Polly's tests of zero delays and of attempts up to 1025.
TEST_CASE("a zero base never waits") {
  for (const auto kind :
       {Kind::Constant, Kind::Linear, Kind::Exponential, Kind::Decorrelated, Kind::Slots}) {
    for (const auto retry : {1, 2, 1'000'000}) {
      CHECK(delay(of_kind(kind, 0ns), retry, {}, 0.7) == 0ns);
    }
  }
  for (const auto jitter :
       {Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Proportional, Jitter::Range}) {
    for (const auto retry : {1, 2, 1'000'000}) {
      CHECK(delay(exponential(0ns, 1e9, kForever, jitter), retry, {}, 0.7) == 0ns);
    }
  }
}

TEST_CASE("the least and the most that can be asked for are waits, and grow with the retries") {
  const auto year = Duration(8760h);
  for (const auto kind : {Kind::None, Kind::Constant, Kind::Linear, Kind::Exponential,
                          Kind::Decorrelated, Kind::TruncatedBinary, Kind::Slots}) {
    for (const auto base : {Duration(0ns), Duration(1ns), Duration(1s), year}) {
      for (const auto multiplier : {1.0, 1.5, 2.0, 1e9}) {
        for (const auto max : {Duration(1ns), year, kForever}) {
          auto backoff = of_kind(kind, base);
          backoff.jitter = Jitter::None;
          backoff.multiplier = multiplier;
          backoff.increment = base;
          backoff.max_interval = max;
          CAPTURE(static_cast<int>(kind));
          CAPTURE(base.count());
          CAPTURE(multiplier);
          CAPTURE(max.count());
          const auto capped = kind == Kind::Linear || kind == Kind::Exponential ||
                              kind == Kind::Decorrelated || kind == Kind::TruncatedBinary;
          for (const auto u : {0.0, 1.0}) {
            Duration before{};
            for (const auto retry : {1, 2, 3, 63, 64, 65, 1023, 1024, 1025, 1'000'000}) {
              CAPTURE(retry);
              const auto wait = delay(backoff, retry, before, u);
              REQUIRE(wait >= before);  // of chance, too, the least and the most only grow
              if (capped) REQUIRE(wait <= max);
              before = wait;
            }
          }
        }
      }
    }
  }
}

TEST_CASE("jitter is even over its range") {
  check_uniform(exponential(100ms, 2, 20s, Jitter::Full), 5, {}, 0s, 1600ms);
  check_uniform(exponential(100ms, 2, 20s, Jitter::Equal), 5, {}, 800ms, 1600ms);
  check_uniform(exponential(500ms, 1.5, 60s, Jitter::Proportional), 1, {}, 250ms, 750ms);
  auto range = exponential(100ms, 2, 1s, Jitter::Range);
  range.low = 0.8;
  range.high = 1.2;
  check_uniform(range, 5, {}, 800ms, 1200ms);
  auto additive = exponential(1s, 2, 64s, Jitter::Additive);
  additive.add = 1s;
  check_uniform(additive, 3, {}, 4s, 5s);
  auto decorrelated = of_kind(Kind::Decorrelated, 1s);
  decorrelated.multiplier = 3;
  check_uniform(decorrelated, 2, 2s, 1s, 6s);
  auto binary = of_kind(Kind::TruncatedBinary, {});
  binary.max_interval = 10s;
  check_uniform(binary, 12, {}, 0s, 10s);
}

// 16 slots, 15 degrees of freedom: below 37.7 in 999 of 1 000 samples.
TEST_CASE("each slot is drawn as often as any other") {
  Random random(80203);
  CAPTURE(random.seed());
  std::vector<int> slots(16);
  for (int i = 0; i < 16000; ++i) {
    const auto wait = delay(of_kind(Kind::Slots, 51200ns), 4, {}, random.unit());
    REQUIRE(wait % 51200ns == 0ns);
    ++slots.at(static_cast<std::size_t>(wait / 51200ns));
  }
  double chi_square = 0;
  for (const auto count : slots) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  CHECK(chi_square < 37.7);
}

TEST_CASE("the mean of a range is the mean of its draws") {
  auto capped = exponential(4s, 2, 5s, Jitter::Range);  // min(5 s, 4 s * U(1, 2))
  capped.cap_after_jitter = true;
  capped.low = 1;
  capped.high = 2;
  auto slots = of_kind(Kind::Slots, 1ms);
  for (const auto& backoff : {capped, slots, exponential(1s, 2, 9s, Jitter::Equal)}) {
    Random random(7);
    double sum = 0;
    for (int i = 0; i < 20000; ++i) {
      sum += static_cast<double>(delay(backoff, 1, {}, random.unit()).count());
    }
    const auto mean = static_cast<double>(delay_range(backoff, 1).mean.count());
    CHECK(sum / 20000 == doctest::Approx(mean).epsilon(0.02));
  }
}

TEST_CASE("any backoff stays within its limits, and grows where chance has no part") {
  Random random(42);
  CAPTURE(random.seed());
  for (int i = 0; i < 20000; ++i) {
    Backoff backoff;
    backoff.kind = random.one_of(Kind::Slots);
    backoff.jitter = random.one_of(Jitter::Additive);
    backoff.cap_after_jitter = random.coin();
    backoff.initial =
        Duration(random.coin() ? random.between(0, 9) : random.between(0, 31536000) * 1000000000);
    backoff.increment = Duration(random.between(0, 1000000000));
    backoff.add = Duration(random.between(0, 1000000000));
    backoff.max_interval =
        random.coin() ? kForever : Duration(random.between(1, 31536000000000000));
    backoff.multiplier = random.coin() ? 1 + random.unit() : std::pow(10, random.unit() * 9);
    backoff.randomization = random.unit();
    backoff.low = random.unit();
    backoff.high = backoff.low + random.unit();
    backoff.steps = static_cast<int>(random.between(1, 52));
    const auto retry =
        static_cast<int>(random.coin() ? random.between(1, 20) : random.between(1, 1000000));
    const Duration previous(random.between(0, 31536000000000000));
    const auto u = random.unit();
    CAPTURE(i);

    const auto wait = delay(backoff, retry, previous, u);
    const auto range = delay_range(backoff, retry, {previous, previous, previous});

    REQUIRE(wait >= range.least);
    REQUIRE(wait <= range.most);
    REQUIRE(range.least - range.mean <= 4us);  // the rounding of doubles
    REQUIRE(range.mean - range.most <= 4us);
    REQUIRE(wait >= 0ns);
    const auto exceeding = backoff.kind == Kind::Exponential && !backoff.cap_after_jitter &&
                           (backoff.jitter == Jitter::Proportional ||
                            backoff.jitter == Jitter::Range || backoff.jitter == Jitter::Additive);
    const auto bounded = backoff.kind == Kind::Exponential || backoff.kind == Kind::Linear ||
                         backoff.kind == Kind::Decorrelated ||
                         backoff.kind == Kind::TruncatedBinary;
    if (bounded && !exceeding) REQUIRE(wait <= backoff.max_interval);
    if (backoff.kind != Kind::Decorrelated) {
      REQUIRE(delay(backoff, retry + 1, {}, 0) >= delay(backoff, retry, {}, 0));
      REQUIRE(delay(backoff, retry + 1, {}, 1) >= delay(backoff, retry, {}, 1));
    }
  }
}
