// What others have published of retries and servers, by the models of this library.
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

std::string backoff_of(const std::string& keys) {
  return R"({"max_attempts": 100000, "max_elapsed_time": "24h", "budget": "none", "backoff": )" +
         keys + "}";
}

struct Jitter {
  const char* name;
  std::string backoff;
  double calls, calls_sd, ms, ms_sd;  // at 100 clients, of 100 runs
};

const std::string kExponential =
    R"("kind": "exponential", "initial": "10ms", "max_interval": "2s", "jitter": )";

}  // namespace

// "Exponential Backoff And Jitter": 100 clients update one row.
TEST_CASE("the five backoffs of the AWS simulator give its numbers") {
  const Jitter jitters[] = {
      {"none", R"({"kind": "none"})", 2424, 35, 2029, 49},
      {"exponential", "{" + kExponential + R"("none"})", 1851, 58, 62984, 3590},
      {"equal", "{" + kExponential + R"("equal"})", 813, 9, 6562, 577},
      {"full", "{" + kExponential + R"("full"})", 795, 7, 4843, 551},
      {"decorrelated", R"({"kind": "decorrelated", "initial": "5ms", "max_interval": "2s"})", 999,
       29, 4480, 662},
  };
  constexpr int kRuns = 20;
  SimulationOptions options;
  options.model = ServerModel(ServerModel::Kind::Occ);
  double exponential = 0;
  double full = 0;
  for (const auto& jitter : jitters) {
    Mean calls;
    Mean ms;
    for (int seed = 1; seed <= kRuns; ++seed) {
      options.seed = static_cast<std::uint64_t>(seed);
      const auto run = run_of(options, policy_of(backoff_of(jitter.backoff)));
      CHECK(run.succeeded == 100);
      calls.add(static_cast<double>(run.sends));
      ms.add(1000 * run.finished_at_s);
    }
    CAPTURE(jitter.name);
    CAPTURE(calls.value());
    CAPTURE(ms.value());
    // The published means are of 100 runs.
    const auto tolerance = [](double sd) {
      return 4.5 * std::hypot(sd / std::sqrt(100.0), sd / std::sqrt(double{kRuns}));
    };
    CHECK(std::abs(calls.value() - jitter.calls) < tolerance(jitter.calls_sd));
    CHECK(std::abs(ms.value() - jitter.ms) < tolerance(jitter.ms_sd));
    if (std::string_view(jitter.name) == "exponential") exponential = calls.value();
    if (std::string_view(jitter.name) == "full") full = calls.value();
  }
  CHECK(full / exponential == doctest::Approx(0.43).epsilon(0.02 / 0.43));
}

TEST_CASE("fewer clients on one row send as little as the AWS simulator says") {
  struct Case {
    int clients;
    const char* jitter;
    double calls, ms;
  };
  const Case cases[] = {{10, "\"none\"", 51, 3590},
                        {10, "\"full\"", 39, 477},
                        {50, "\"none\"", 624, 36443},
                        {50, "\"full\"", 333, 2890}};
  SimulationOptions options;
  options.model = ServerModel(ServerModel::Kind::Occ);
  for (const auto& each : cases) {
    options.clients = each.clients;
    Mean calls;
    Mean ms;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      options.seed = seed;
      const auto run =
          run_of(options, policy_of(backoff_of("{" + kExponential + each.jitter + "}")));
      calls.add(static_cast<double>(run.sends));
      ms.add(1000 * run.finished_at_s);
    }
    CAPTURE(each.clients);
    CAPTURE(each.jitter);
    // The published mean has an error, too: of 100 runs instead of 40.
    const double more = std::sqrt(1 + 40.0 / 100);
    CHECK(std::abs(calls.value() - each.calls) < 4.5 * more * calls.error() + 0.5);
    CHECK(std::abs(ms.value() - each.ms) < 4.5 * more * ms.error() + 0.5);
  }
}

// Brooker, "Fixing retries with token buckets and circuit breakers".
TEST_CASE("three retries against a server that fails with a probability") {
  struct Case {
    double f, success, load;
  };
  SimulationOptions options;
  options.duration = 10s;
  options.model.network = Distribution(Distribution::Kind::Exponential, 10ms);
  const auto three =
      policy_of(R"({"max_attempts": 4, "budget": "none", "backoff": {"kind": "none"}})");
  for (const double f : {0.01, 0.05, 0.1, 0.2, 0.5, 0.75, 1.0}) {
    CAPTURE(f);
    options.model.probability = f;
    const double success = 1 - std::pow(f, 4);
    const double load = f < 1 ? (1 - std::pow(f, 4)) / (1 - f) : 4;
    const auto run = run_of(options, three);
    const auto calls = static_cast<double>(run.calls);
    CHECK(std::abs(run.success_ratio() - success) <=
          3 * std::sqrt(success * (1 - success) / calls) + 1e-9);
    CHECK(std::abs(run.sends_per_call() - load) < 3 * 1.5 / std::sqrt(calls) + 1e-9);
    const auto once = run_of(options, preset_of("none"));
    CHECK(once.sends == once.calls);
    CHECK(std::abs(once.success_ratio() - (1 - f)) <= 3 * std::sqrt(f * (1 - f) / calls) + 1e-9);
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

// Beyer et al., "Site Reliability Engineering", chapter 22, at a tenth of its rates.
TEST_CASE("a server that gets 1 % too much gets 100 more each second, unless there is a budget") {
  SimulationOptions options;
  options.model = model_of("capacity:rate=1000,network=0ms");
  options.load = load_of("open:rate=1010,arrivals=even");
  options.clients = 10;
  options.duration = 20s;
  const std::string retries = R"("backoff": {"kind": "constant", "interval": "1s"})";
  const auto sent_in = [](const SimulationRun& run, std::size_t second) {
    std::uint64_t sum = 0;
    for (std::size_t i = 10 * second; i < 10 * second + 10; ++i) sum += run.samples[i].sent;
    return static_cast<double>(sum);
  };
  const auto ten =
      run_of(options, policy_of(R"({"max_attempts": 10, "budget": "none", )" + retries + "}"));
  for (std::size_t second = 0; second < 9; ++second) {
    CAPTURE(second);
    CHECK(std::abs(sent_in(ten, second) - (1010 + 10 * static_cast<double>(second))) <= 2);
  }
  const auto budget =
      run_of(options, policy_of(R"({"max_attempts": 10, "budget": {"kind": "ratio", "ratio": 0.1,
                             "min_per_second": 0}, )" +
                                retries + "}"));
  // The window of the budget is ten seconds, in which it allows a tenth more.
  double sum = 0;
  for (std::size_t second = 10; second < 20; ++second) sum += sent_in(budget, second);
  CHECK(sum <= 1.01 * 10 * 1111);
}

// Bronson et al., HotOS 2021: a database that is good for 300 requests a second.
TEST_CASE("one retry keeps a database down at 280 calls a second, and not below 150") {
  SimulationOptions options;
  options.model = model_of("queue:servers=30,service=100ms,network=0ms,queue=100000");
  Trigger outage(20s, 10s);
  outage.capacity = 0;
  options.model.triggers = {outage};
  options.duration = 120s;
  const auto once_again = policy_of(
      R"({"max_attempts": 2, "budget": "none", "attempt_timeout": "1s",
          "backoff": {"kind": "constant", "interval": "1s"}})");
  options.load.rate = 280;
  const auto down = run_of(options, once_again);
  CHECK(verdict_text(down) == "metastable");
  CHECK(down.peak_sends_per_second > 520);
  CHECK(down.bounds.w_l == 2);
  options.load.rate = 100;
  const auto up = run_of(options, once_again);
  REQUIRE(up.recovered_after);
  CHECK(*up.recovered_after < 60);
  // Without retries the same load is no danger.
  options.load.rate = 280;
  options.duration = 240s;
  const auto none = run_of(options, policy_of(R"({"preset": "none", "attempt_timeout": "1s"})"));
  CHECK(none.recovered_after.has_value());
}

// Huang et al., OSDI 2022: a replicated MongoDB at 6 200 requests a second, timeout 3 s, at most
// four retries; at a tenth of its rates, with a queue that is tuned to where it tipped.
TEST_CASE("a little less capacity, for a second longer, is the difference between up and down") {
  struct Case {
    double capacity;
    Duration lasts;
    double rate;
    bool recovers;
  };
  const Case cases[] = {{0.22, 10s, 620, true},
                        {0.20, 10s, 620, false},
                        {0.20, 9s, 620, true},
                        {0.20, 10s, 420, true}};
  const auto four_retries = policy_of(
      R"({"max_attempts": 5, "budget": "none", "attempt_timeout": "3s", "max_elapsed_time": "none",
          "backoff": {"kind": "constant", "interval": "100ms"}})");
  for (const auto& each : cases) {
    CAPTURE(each.capacity);
    CAPTURE(each.rate);
    SimulationOptions options;
    options.model = model_of("queue:servers=82,service=50ms,network=1ms,queue=1000000");
    Trigger slow(10s, each.lasts);
    slow.capacity = each.capacity;
    options.model.triggers = {slow};
    options.load.rate = each.rate;
    options.duration = 40s;
    const auto run = run_of(options, four_retries);
    CHECK(run.recovered_after.has_value() == each.recovers);
    if (!each.recovers) {
      CHECK(run.verdict == SimulationRun::Verdict::Metastable);
      CHECK(run.peak_sends_per_second > 3 * each.rate);
    }
  }
}

// Brooker, "What is backoff for?": the slower the more requests there are.
TEST_CASE("a spike brings a slow server down for good; with long random waits it recovers") {
  SimulationOptions options;
  options.model = model_of("slope:base=1s,per_request=10ms,network=exponential(100ms)");
  Trigger spike(20s, 5s);
  spike.load = 2;
  options.model.triggers = {spike};
  options.load.rate = 40;
  options.duration = 120s;
  const std::string limits =
      R"({"max_attempts": 3, "budget": "none", "attempt_timeout": "3s", "backoff": )";
  const auto at_once = run_of(options, policy_of(limits + R"({"kind": "none"}})"));
  CHECK(at_once.verdict == SimulationRun::Verdict::Metastable);
  const auto waits =
      run_of(options,
             policy_of(limits + R"({"kind": "exponential", "initial": "20s", "jitter": "full"}})"));
  CHECK(waits.verdict == SimulationRun::Verdict::Recovered);
}
