// When calls begin.
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Sample = SimulationSample;

// A server that responds at once.
SimulationOptions with_load(std::string_view load) {
  SimulationOptions options;
  options.model = model_of("fail:probability=0,network=0ms");
  options.load = load_of(load);
  options.duration = 20s;
  return options;
}

}  // namespace

TEST_CASE("an open load has its rate of all clients together, whatever their number") {
  for (const int clients : {1, 7, 100, 5000}) {
    CAPTURE(clients);
    auto options = with_load("open:rate=500");
    options.clients = clients;
    const auto run = run_of(options, no_retries());
    CHECK(std::abs(static_cast<double>(run.calls) - 10'000) < 5 * 100);
    CHECK(run.finished_at_s < 20);
    // Counts of Poisson's: their variance is their mean.
    double squares = 0;
    for (const auto& sample : run.samples) squares += std::pow(sample.offered - 50.0, 2);
    CHECK(squares / static_cast<double>(run.samples.size()) == doctest::Approx(50).epsilon(0.4));
  }
}

TEST_CASE("even arrivals are at equal distances") {
  auto options = with_load("open:rate=25,arrivals=even");
  const auto run = run_of(options, no_retries());
  CHECK(run.calls == 499);  // the first after 40 ms, the last before 20 s
  for (std::size_t second = 1; second < 19; ++second) {
    CHECK(in_second(run, second, &Sample::offered) == 25);
  }
}

TEST_CASE("a curve goes from point to point, in straight lines") {
  auto options = with_load(R"({"kind": "open", "arrivals": "even", "curve": [
      {"at": "5s", "rate": 100}, {"at": "10s", "rate": 300}, {"at": "10s", "rate": 0},
      {"at": "15s", "rate": 0}, {"at": "15s", "rate": 50}]})");
  const auto run = run_of(options, no_retries());
  const auto offered = [&](std::size_t second) {
    return static_cast<double>(in_second(run, second, &Sample::offered));
  };
  CHECK(std::abs(offered(2) - 100) <= 1);
  CHECK(std::abs(offered(5) - 120) <= 2);
  CHECK(std::abs(offered(7) - 200) <= 2);
  CHECK(std::abs(offered(9) - 280) <= 2);
  CHECK(offered(11) == 0);
  CHECK(offered(14) == 0);
  CHECK(std::abs(offered(17) - 50) <= 1);
  // Poisson's have the same rates.
  options.load.arrivals = Load::Arrivals::Poisson;
  const auto poisson = run_of(options, no_retries());
  CHECK(std::abs(in_seconds(poisson, 0, 5, &Sample::offered) - 500) < 5 * std::sqrt(500));
  CHECK(std::abs(in_seconds(poisson, 5, 10, &Sample::offered) - 1000) < 5 * std::sqrt(1000));
  CHECK(in_seconds(poisson, 10, 15, &Sample::offered) == 0);
  CHECK(std::abs(in_seconds(poisson, 15, 20, &Sample::offered) - 250) < 5 * std::sqrt(250));
}

TEST_CASE("no call begins at the moment at which the rate becomes zero") {
  auto options = with_load(R"({"kind": "open", "arrivals": "even", "curve": [
      {"at": "0s", "rate": 8}, {"at": "10s", "rate": 8}, {"at": "10s", "rate": 0}]})");
  CHECK(run_of(options, no_retries()).calls == 79);  // the first after 125 ms
}

TEST_CASE("even arrivals follow a rate that changes between them") {
  const auto run_with = [](std::string_view points, Duration duration,
                           std::vector<Trigger> triggers = {}) {
    auto options = with_load(R"({"kind": "open", "arrivals": "even", "curve": [)" +
                             std::string(points) + "]}");
    options.duration = duration;
    options.model.triggers = std::move(triggers);
    return run_of(options, no_retries());
  };
  // 800 calls while the rate rises, and 80 in each of the ten seconds after that.
  const auto rising = run_with(R"({"at": "0s", "rate": 0}, {"at": "20s", "rate": 80})", 30s);
  CHECK(std::abs(static_cast<double>(rising.calls) - 1600) <= 1);
  CHECK(std::abs(in_seconds(rising, 0, 10, &Sample::offered) - 200.0) <= 1);
  CHECK(std::abs(in_seconds(rising, 10, 20, &Sample::offered) - 600.0) <= 1);
  // The other way round, with a rate of zero at the end.
  const auto falling = run_with(R"({"at": "0s", "rate": 80}, {"at": "20s", "rate": 0})", 30s);
  CHECK(std::abs(static_cast<double>(falling.calls) - 800) <= 1);
  CHECK(std::abs(in_seconds(falling, 0, 10, &Sample::offered) - 600.0) <= 1);
  CHECK(in_seconds(falling, 20, 30, &Sample::offered) == 0);
  // At a rate of zero nothing adds up to a call, and a trigger takes effect before the next call.
  Trigger more(10s, 5s);
  more.load = 100;
  const auto triggered = run_with(R"({"at": "0s", "rate": 0.05})", 30s, {more});
  CHECK(in_seconds(triggered, 0, 10, &Sample::offered) == 0);
  CHECK(std::abs(in_seconds(triggered, 10, 15, &Sample::offered) - 25.0) <= 1);
  CHECK(in_seconds(triggered, 15, 30, &Sample::offered) <= 1);
}

TEST_CASE("with a closed load a client has one call at a time, and thinks after it") {
  auto options = with_load("closed:think=900ms");
  options.model = model_of("queue:servers=1000,service=100ms,network=0ms");
  options.clients = 10;
  const auto run = run_of(options, no_retries());
  // One call takes a second with the thinking. It begins within the first 900 ms.
  for (std::size_t second = 1; second < 19; ++second) {
    CHECK(in_second(run, second, &Sample::offered) == 10);
  }
  CHECK(run.p50_ms == doctest::Approx(100));
  // A client does not begin another call while one is under way.
  options.model = model_of("queue:servers=1,service=1s,network=0ms");
  const auto slow = run_of(options, no_retries());
  for (const auto& sample : slow.samples) CHECK(sample.in_flight <= 10);
  CHECK(std::abs(in_seconds(slow, 0, 20, &Sample::succeeded) - 19) <= 1);
}

TEST_CASE("with the load once each client makes one call at the beginning") {
  auto options = with_load("once");
  options.clients = 250;
  const auto run = run_of(options, no_retries());
  CHECK(run.calls == 250);
  CHECK(run.samples.front().offered == 250);
  CHECK(run.finished_at_s == 0);
}

TEST_CASE("calls that take no time, with no time to think after them, end the simulation") {
  auto options = with_load("closed:think=exponential(0s)");
  options.clients = 10;
  options.policies = {{"strict", policy_of(R"({"rate": {"limit": "1/h", "max_wait": "0s"}})")}};
  const auto report = simulate(options);
  REQUIRE_FALSE(report.has_value());
  CHECK(report.error().code == Errc::InvalidRequest);
  CHECK(
      report.error().message ==
      "strict: at 0s, calls take no time, and \"think\" of the load adds none, so this would never "
      "end; set a longer \"think\"");
  // As soon as calls take time, the time to think may be zero.
  options.model = model_of("fail:probability=0,network=1ms");
  options.duration = 1s;
  CHECK(run_of(options, no_retries()).calls == 10 * 500);
}

TEST_CASE("with the load once every trigger is checked") {
  auto options = with_load("once");
  options.policies = {{"none", no_retries()}};
  Trigger fails(1s, 1s);
  fails.fail = 1;
  Trigger slows(1s, 1s);
  slows.capacity = 0.5;
  options.model.triggers = {fails, slows};
  const auto report = simulate(options);
  REQUIRE_FALSE(report.has_value());
  CHECK(report.error().message.find("the model \"fail\" has none") != std::string::npos);
}

TEST_CASE("no call begins after the duration, and those under way go on to their end") {
  auto options = with_load("open:rate=100");
  options.model = model_of("queue:servers=1000,service=5s,network=0ms");
  options.duration = 10s;
  const auto run = run_of(options, no_retries());
  CHECK(in_seconds(run, 10, 20, &Sample::offered) == 0);
  CHECK(run.succeeded == run.calls);
  CHECK(run.finished_at_s > 14);
  CHECK(run.finished_at_s <= 15);
  CHECK(run.samples.back().in_flight == 0);
}

TEST_CASE("all policies get the same calls, at the same times") {
  for (const auto* const load : {"open:rate=300", "open:rate=300,arrivals=even", "once"}) {
    CAPTURE(load);
    SimulationOptions options;
    options.load = load_of(load);
    options.duration = 5s;
    options.policies = {{"a", no_retries()}, {"b", preset_of("curl")}, {"c", PolicySet()}};
    const auto report = simulate(options).value();
    const auto& first = report.runs.front();
    for (const auto& run : report.runs) {
      CHECK(run.calls == first.calls);
      for (std::size_t i = 0; i < first.samples.size() && i < 50; ++i) {
        CHECK(run.samples.at(i).offered == first.samples[i].offered);
      }
    }
  }
}

TEST_CASE("a policy file is asked for the policy of the request that is sent") {
  SimulationOptions options;
  options.model = model_of("fail:probability=1");
  options.load.kind = Load::Kind::Once;
  options.clients = 1;
  const auto policies = parse_policies(R"({"version": 1, "default": "none", "policies": {
      "none": {"max_attempts": 1}, "three": {"max_attempts": 3, "budget": "none"}},
      "endpoints": [{"match": {"host": "a.example", "methods": ["GET"]}, "policy": "three"}]})",
                                       "test")
                            .value();
  options.request = Request::get("http://a.example/");
  CHECK(run_of(options, policies).sends == 3);
  CHECK(run_of(options, policies).bounds.w_l == 3);
  options.request = Request::get("http://b.example/");
  CHECK(run_of(options, policies).sends == 1);
  CHECK(run_of(options, policies).bounds.w_l == 1);
}
