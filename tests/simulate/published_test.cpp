// What others have published of retries and servers, by the models of this library.
//
// Where an article gives no figures, its own program was run again, and the figures are from there.
// The cases whose names begin with "long:" are the same with all runs and at full rates; `./dev
// soak` runs them.
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Sample = SimulationSample;
using Verdict = SimulationRun::Verdict;

// --- "Exponential Backoff And Jitter": clients update one row. ---

struct Jitter {
  const char* name;
  std::string backoff;
};

const std::string kExponential =
    R"("kind": "exponential", "initial": "10ms", "max_interval": "2s", "jitter": )";
const std::array<Jitter, 5> kJitters = {{
    {"none", R"({"kind": "none"})"},
    {"exponential", "{" + kExponential + R"("none"})"},
    {"equal", "{" + kExponential + R"("equal"})"},
    {"full", "{" + kExponential + R"("full"})"},
    {"decorrelated", R"({"kind": "decorrelated", "initial": "5ms", "max_interval": "2s"})"},
}};

// Means of 100 runs, in the order of kJitters.
struct AwsRow {
  int clients;
  std::array<double, 5> calls, ms;
};
const AwsRow kAwsRows[] = {
    {10, {50, 51, 42, 39, 38}, {377, 3590, 719, 477, 448}},
    {50, {686, 624, 347, 333, 374}, {1138, 36443, 4230, 2890, 2164}},
    {100, {2424, 1851, 813, 795, 999}, {2029, 62984, 6562, 4843, 4480}},
};

// The figures of that table are whole numbers, and means with the error of 100 runs.
void check_mean(const Mean& ours, double published) {
  const double more = std::sqrt(1 + ours.count / 100.0);
  CHECK(std::abs(ours.value() - published) < 4.5 * more * ours.error() + 0.5);
}

void check_aws_table(std::uint64_t runs) {
  SimulationOptions options;
  options.model = ServerModel(ServerModel::Kind::Occ);
  for (const auto& row : kAwsRows) {
    options.clients = row.clients;
    std::array<Mean, 5> calls;
    std::array<Mean, 5> ms;
    for (std::size_t i = 0; i < kJitters.size(); ++i) {
      const auto policy = policy_of(
          R"({"max_attempts": 100000, "max_elapsed_time": "24h", "budget": "none", "backoff": )" +
          kJitters[i].backoff + "}");
      for (options.seed = 1; options.seed <= runs; ++options.seed) {
        const auto run = run_of(options, policy);
        CHECK(run.succeeded == static_cast<std::uint64_t>(row.clients));
        calls[i].add(static_cast<double>(run.sends));
        ms[i].add(1000 * run.finished_at_s);
      }
      CAPTURE(row.clients);
      CAPTURE(std::string(kJitters[i].name));
      check_mean(calls[i], row.calls[i]);
      check_mean(ms[i], row.ms[i]);
    }
    if (row.clients != 100) continue;
    // What the article says in words.
    CHECK(std::abs(calls[3].value() / calls[1].value() - 0.43) <= 0.02);
    for (const std::size_t jittered : {2U, 3U, 4U}) {
      CHECK(calls[jittered].value() < calls[1].value());
      CHECK(ms[jittered].value() < ms[1].value());
    }
  }
}

// --- Brooker, "Fixing retries with token buckets and circuit breakers": 100 clients, each with 10
// calls a second, and a server that fails with a probability. ---

struct BrookerRow {
  double f;
  double none, three, three_load, bucket, bucket_load;
};
const BrookerRow kBrookerRows[] = {
    {0.01, 0.990, 1.000, 1.010, 1.000, 1.010}, {0.05, 0.951, 1.000, 1.054, 1.000, 1.050},
    {0.10, 0.896, 1.000, 1.108, 0.986, 1.098}, {0.20, 0.797, 0.999, 1.246, 0.888, 1.112},
    {0.50, 0.506, 0.938, 1.882, 0.557, 1.114}, {0.75, 0.248, 0.682, 2.739, 0.281, 1.115},
    {1.00, 0.000, 0.000, 4.000, 0.000, 1.115},
};

const std::string kNoWaits = R"("max_attempts": 4, "backoff": {"kind": "none"}, "budget": )";

SimulationOptions brooker(double f) {
  SimulationOptions options;
  options.duration = 30s;
  options.model.network = Distribution(Distribution::Kind::Exponential, 10ms);
  options.model.probability = f;
  return options;
}

// Three standard errors of the difference of two runs with 30 000 calls, and what the table's three
// digits leave open.
double success_error(double success) {
  return 3 * std::sqrt(2 * success * (1 - success) / 30'000) + 0.0005;
}
double load_error(double f) {
  double mean = 0;
  double squares = 0;
  for (int sends = 1; sends <= 4; ++sends) {
    const double share = std::pow(f, sends - 1) * (sends < 4 ? 1 - f : 1);
    mean += share * sends;
    squares += share * sends * sends;
  }
  return 3 * std::sqrt(2 * (squares - mean * mean) / 30'000) + 0.0005;
}

// --- Beyer et al., "Site Reliability Engineering", chapter 22: a server for 10 000 requests a
// second gets 10 100, and those that fail are tried again a second later. ---

// `part`: of these rates.
void check_staircase(double part) {
  SimulationOptions options;
  options.model = model_of("capacity:network=0ms");
  options.model.rate = 10'000 * part;
  options.load = load_of("open:arrivals=even");
  options.load.rate = 10'100 * part;
  options.clients = 10;
  options.duration = 60s;
  const std::string exact = R"({"kind": "constant", "interval": "1s"})";
  const auto with = [&](const std::string& limits, const std::string& backoff) {
    const auto run = run_of(options, policy_of("{" + limits + R"(, "max_elapsed_time": "none",
        "throttle_backoff": "none", "backoff": )" +
                                               backoff + "}"));
    std::vector<double> sent;
    for (std::size_t second = 0; second < 60; ++second) {
      sent.push_back(static_cast<double>(in_second(run, second, &Sample::sent)));
    }
    return sent;
  };
  const double error = 20 * part + 2;
  // Ten tries: 100 more each second.
  const auto ten = with(R"("max_attempts": 10, "budget": "none")", exact);
  for (std::size_t second = 0; second < 9; ++second) {
    CAPTURE(second);
    CHECK(std::abs(ten[second] - part * (10'100 + 100 * static_cast<double>(second))) <= error);
  }
  // Three retries: 12 859 in the 30th second, and at last x = 10 100·(1 + s + s² + s³), where s is
  // the share that is rejected: 14 608. There, who is rejected is random. Here it is who comes at
  // the end of a window, so that the waits must not have the length of windows.
  const auto three = with(R"("max_attempts": 4, "budget": "none")",
                          R"({"kind": "exponential", "initial": "1s", "multiplier": 1,
                              "jitter": "proportional", "randomization": 0.1})");
  CHECK(std::abs(three[29] - part * 12'859) <= part * 250);
  CHECK(three.back() < part * 14'608);
  // A budget for a tenth: at most 11 110, in each window of ten seconds.
  const auto budget =
      with(R"("max_attempts": 10, "budget": {"kind": "ratio", "ratio": 0.1, "min_per_second": 0})",
           exact);
  for (std::size_t first = 10; first < 60; first += 10) {
    double sum = 0;
    for (auto second = first; second < first + 10; ++second) sum += budget[second];
    CHECK(sum <= 10 * part * 11'110 + 10);
  }
}

// --- Bronson et al., HotOS 2021: a database that is good for 300 requests a second, one retry
// after a second, and an outage of ten seconds. ---

SimulationRun after_outage_of_database(double rate, Duration duration, const PolicySet& policy) {
  SimulationOptions options;
  options.model = model_of("queue:servers=30,service=100ms,network=0ms,queue=1000000");
  options.model.triggers = {trigger_of("at=20s,for=10s,capacity=0")};
  options.load.rate = rate;
  options.duration = duration;
  return run_of(options, policy);
}

// --- Huang et al., OSDI 2022: a replicated MongoDB for 6 200 requests a second, a timeout of 3 s,
// at most four retries; with a queue that is tuned to where it tipped. ---

void check_quartet(double part) {
  struct Case {
    double capacity;
    Duration lasts;
    double rate;
    bool recovers;
  };
  const Case cases[] = {{0.22, 10s, 6200, true},
                        {0.20, 10s, 6200, false},
                        {0.20, 9s, 6200, true},
                        {0.20, 10s, 4200, true}};
  const auto four_retries = policy_of(
      R"({"max_attempts": 5, "budget": "none", "attempt_timeout": "3s", "max_elapsed_time": "none",
          "backoff": {"kind": "constant", "interval": "100ms"}})");
  for (const auto& each : cases) {
    CAPTURE(each.capacity);
    CAPTURE(each.rate);
    SimulationOptions options;
    options.model = model_of("queue:service=50ms,network=1ms,queue=10000000");
    options.model.servers = static_cast<int>(std::lround(820 * part));
    Trigger slow(10s, each.lasts);
    slow.capacity = each.capacity;
    options.model.triggers = {slow};
    options.load.rate = each.rate * part;
    options.duration = 40s;
    const auto run = run_of(options, four_retries);
    CHECK(run.recovered_after.has_value() == each.recovers);
    if (each.recovers) continue;
    CHECK(run.verdict == Verdict::Metastable);
    CHECK(run.peak_sends_per_second > 3 * options.load.rate);
    // The goodput falls by 90 %.
    CHECK(in_seconds(run, 30, 40, &Sample::succeeded) <= 0.1 * 10 * options.load.rate);
  }
}

// --- Brooker, "What is backoff for?": a server that is the slower the more requests there are. ---

const std::string kImpatient = R"({"max_attempts": 3, "budget": "none", "attempt_timeout": "3s",
                                   "max_elapsed_time": "none", "backoff": )";
// U(0, 20 s), then U(0, 40 s).
const std::string kLongWaits = R"({"kind": "exponential", "initial": "20s", "jitter": "full"}})";

SimulationOptions slow_server() {
  SimulationOptions options;
  options.model = model_of("slope:base=1s,per_request=10ms,network=exponential(100ms)");
  options.duration = 120s;
  return options;
}

void check_spike(std::uint64_t runs) {
  auto options = slow_server();
  options.model.triggers = {trigger_of("at=20s,for=5s,load=2")};
  options.load.rate = 40;
  Mean down;
  Mean resent;
  Mean at_30;
  Mean from_60;
  std::uint64_t metastable = 0;
  for (options.seed = 1; options.seed <= runs; ++options.seed) {
    const auto at_once = run_of(options, policy_of(kImpatient + R"({"kind": "none"}})"));
    metastable += at_once.verdict == Verdict::Metastable ? 1 : 0;
    down.add(in_seconds(at_once, 65, 85, &Sample::succeeded) / 20);
    resent.add((in_seconds(at_once, 65, 85, &Sample::sent) -
                in_seconds(at_once, 65, 85, &Sample::offered)) /
               20);
    const auto waits = run_of(options, policy_of(kImpatient + kLongWaits));
    CHECK(waits.verdict == Verdict::Recovered);
    CHECK(waits.recovered_after.value_or(100) <= 35);
    at_30.add(in_seconds(waits, 30, 35, &Sample::succeeded) / 5);
    from_60.add(in_seconds(waits, 65, 115, &Sample::succeeded) / 50);
  }
  CAPTURE(down.value());
  CAPTURE(resent.value());
  CAPTURE(at_30.value());
  CAPTURE(from_60.value());
  // Published are means of ten runs: 12 a second succeed of 40, with 57 retries a second. Most runs
  // stay at 0 with 80 retries, the others recover.
  CHECK(2 * metastable > runs);
  CHECK(std::abs(down.value() - 12) <=
        3 * down.error() * std::sqrt(1 + static_cast<double>(runs) / 10));
  CHECK(std::abs(resent.value() - 57) <=
        3 * resent.error() * std::sqrt(1 + static_cast<double>(runs) / 10));
  // With long waits 52 at 30 s, and then 40.
  CHECK(std::abs(at_30.value() - 52) < 8);
  CHECK(std::abs(from_60.value() - 40) < 2);
}

}  // namespace

TEST_SUITE_BEGIN("large");

TEST_CASE("the five backoffs of the AWS simulator, at 10, 50 and 100 clients") {
  check_aws_table(15);
}
TEST_CASE("long: the AWS simulator with 100 runs" * doctest::skip()) { check_aws_table(100); }

TEST_CASE("three retries and a budget against a server that fails with a probability") {
  const auto three = policy_of("{" + kNoWaits + "\"none\"}");
  const auto bucket =
      policy_of("{" + kNoWaits + R"({"kind": "ratio", "ratio": 0.1, "min_per_second": 0}})");
  for (const auto& row : kBrookerRows) {
    CAPTURE(row.f);
    auto options = brooker(row.f);
    const auto once = run_of(options, no_retries());
    CHECK(once.sends == once.calls);
    CHECK(std::abs(once.success_ratio() - row.none) <= success_error(row.none));
    const auto retried = run_of(options, three);
    CHECK(std::abs(retried.success_ratio() - row.three) <= success_error(row.three));
    CHECK(std::abs(retried.sends_per_call() - row.three_load) <= load_error(row.f));
    // Of the 300 calls of a client, his bucket allows five retries more: it begins full. Ours has a
    // tenth of the calls of the last ten seconds, and up to one retry that is not yet whole.
    const auto limited = run_of(options, bucket);
    CHECK(limited.sends_per_call() <= row.bucket_load + load_error(row.f));
    CHECK(limited.sends_per_call() >= row.bucket_load - 6 / 300.0 - load_error(row.f));
    CHECK(limited.success_ratio() <= row.bucket + success_error(row.bucket));
    CHECK(limited.success_ratio() >=
          row.bucket - (1 - row.f) * 6 / 300 - success_error(row.bucket));
  }
}

TEST_CASE("a breaker of retries, which never closes again, takes them away where a tenth fails") {
  // His is open while more than a tenth of all attempts have failed. Ours stays open for good: from
  // a fifth on that is the same.
  const auto breaker = policy_of("{" + kNoWaits + R"("none", "breaker": {"kind": "ratio",
      "failure_ratio": 0.1, "min_requests": 1, "window": "1h", "applies_to": "retries",
      "open_for": {"kind": "constant", "interval": "1h"}}})");
  struct Case {
    double f, success, load;
  };
  const Case cases[] = {{0.01, 1.000, 1.010}, {0.05, 0.996, 1.047}, {0.10, 0.939, 1.039},
                        {0.20, 0.797, 1.001}, {0.50, 0.501, 1.000}, {0.75, 0.240, 1.000},
                        {1.00, 0.000, 1.000}};
  for (const auto& each : cases) {
    CAPTURE(each.f);
    auto options = brooker(each.f);
    const auto run = run_of(options, breaker);
    CHECK(run.sends_per_call() <= each.load + 0.005);
    CHECK(run.sends_per_call() >= 1);
    // First attempts always go out.
    CHECK(run.not_sent == 0);
    CHECK(run.success_ratio() >= 1 - each.f - success_error(1 - each.f));
    if (each.f < 0.2) continue;
    CHECK(run.sends_per_call() >= each.load - 0.002);
    CHECK(std::abs(run.success_ratio() - each.success) <= success_error(each.success) + 0.005);
  }
}

TEST_CASE("each client brings the burst of its own budget") {
  // 3 000 calls fail. A budget for five retries, which never gets anything back.
  const auto five =
      policy_of("{" + kNoWaits +
                R"({"kind": "tokens", "capacity": 5, "retry_cost": 1, "refill_on_success": 0.1}})");
  for (const int clients : {10, 100, 300}) {
    CAPTURE(clients);
    auto options = brooker(1);
    options.load.rate = 100;
    options.clients = clients;
    const auto run = run_of(options, five);
    CHECK(run.sends == run.calls + 5 * static_cast<std::uint64_t>(clients));
  }
}

TEST_CASE("where everything fails, a budget ends the retries and an attempt limit does not") {
  SimulationOptions options;
  options.model.probability = 1;
  options.duration = 20s;
  const auto curl = run_of(options, preset_of("curl"));
  CHECK(curl.sends == 4 * curl.calls);
  const auto standard = run_of(options, PolicySet());
  REQUIRE(standard.bounds.burst);
  const double calls_per_client = static_cast<double>(standard.calls) / options.clients;
  CHECK(standard.sends_per_call() <= 1 + *standard.bounds.burst / calls_per_client);
  CHECK(standard.sends_per_call() > 1.3);
}

TEST_CASE("layers multiply: 4^3 = 64, and 3^5 = 243") {
  SimulationOptions options;
  options.clients = 1;
  options.load.kind = Load::Kind::Once;
  options.model = model_of("fail:probability=1,layers=2");
  CHECK(run_of(options, policy_of(R"({"max_attempts": 4, "budget": "none"})")).sends == 64);
  options.model = model_of("fail:probability=1,layers=4");
  CHECK(run_of(options, policy_of(R"({"max_attempts": 3, "budget": "none",
                                      "max_elapsed_time": "none"})"))
            .sends == 243);
}

TEST_CASE("a server that gets 1 % too much gets 1 % more each second, unless there is a budget") {
  check_staircase(0.1);
}
TEST_CASE("long: the staircase at full rates" * doctest::skip()) { check_staircase(1); }

// The same chapter: 1 000 threads, 1 000 requests a second of 100 ms, and one in twenty hangs until
// its deadline of 100 s.
TEST_CASE("a few requests that hang take the threads of all the others") {
  SimulationOptions options;
  options.model = model_of(R"({"kind": "queue", "servers": 100, "queue": 0, "network": "0ms",
      "service": {"kind": "mix", "parts": [{"weight": 95, "of": "100ms"},
                                           {"weight": 5, "of": "100s"}]}})");
  options.load.rate = 100;
  options.duration = 600s;
  const auto run = run_of(options, no_retries());
  const double begun =
      in_seconds(run, 200, 600, &Sample::offered) - in_seconds(run, 200, 600, &Sample::failed);
  CHECK(begun / in_seconds(run, 200, 600, &Sample::offered) ==
        doctest::Approx(0.196).epsilon(0.05));
}

TEST_CASE("one retry keeps a database down at 280 calls a second, and not below 150") {
  const auto once_again = policy_of(
      R"({"max_attempts": 2, "budget": "none", "attempt_timeout": "1s",
          "backoff": {"kind": "constant", "interval": "1s"}})");
  const auto down = after_outage_of_database(280, 120s, once_again);
  CHECK(verdict_text(down) == "metastable");
  CHECK(down.peak_sends_per_second > 520);
  CHECK(std::abs(in_seconds(down, 60, 120, &Sample::sent) / 60 - 560) < 10);
  CHECK(in_seconds(down, 60, 120, &Sample::succeeded) == 0);
  CHECK(down.bounds.w_l == 2);
  CHECK(down.bounds.stable_below == 0.5);  // 150 of 300
  CHECK(after_outage_of_database(145, 600s, once_again).verdict == Verdict::Recovered);
  CHECK(after_outage_of_database(155, 600s, once_again).verdict == Verdict::Metastable);
  // Without retries 280 a second are no danger.
  const auto none = policy_of(R"({"preset": "none", "attempt_timeout": "1s"})");
  CHECK(after_outage_of_database(280, 240s, none).verdict == Verdict::Recovered);
}

TEST_CASE("a little less capacity, for a second longer, is the difference between up and down") {
  check_quartet(0.1);
}
TEST_CASE("long: the four of OSDI 2022 at full rates" * doctest::skip()) { check_quartet(1); }

TEST_CASE("a spike brings a slow server down for good; with long random waits it recovers") {
  check_spike(6);
}
TEST_CASE("long: the spike with 40 runs" * doctest::skip()) { check_spike(40); }

TEST_CASE("a load that rises too far brings it down either way: backoff only delays") {
  auto options = slow_server();
  // 80 − 1.6·|t − 25 s|
  options.load = load_of(R"({"kind": "open", "curve": [
      {"at": "0s", "rate": 40}, {"at": "25s", "rate": 80}, {"at": "75s", "rate": 0}]})");
  for (const auto& backoff : {std::string(R"({"kind": "none"}})"), kLongWaits}) {
    CAPTURE(backoff);
    const auto run = run_of(options, policy_of(kImpatient + backoff));
    CHECK(in_seconds(run, 5, 10, &Sample::succeeded) >
          0.8 * in_seconds(run, 5, 10, &Sample::offered));
    CHECK(in_seconds(run, 32, 50, &Sample::succeeded) <
          0.05 * in_seconds(run, 32, 50, &Sample::offered));
  }
}

TEST_SUITE_END();
