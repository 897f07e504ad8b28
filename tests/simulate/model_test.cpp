// What the models of servers do, and what triggers change.
#include "tests/policy/temporary.hpp"
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Sample = SimulationSample;

// At most `attempts` sends, with an interval of a second between them; it heeds the server.
PolicySet every_second(int attempts) {
  return policy_of(R"({"max_attempts": )" + std::to_string(attempts) +
                   R"(, "max_elapsed_time": "none", "budget": "none", "throttle_backoff": "none",
                       "server_delay": {"combine": "max", "spread": 0},
                       "backoff": {"kind": "constant", "interval": "1s"}})");
}

SimulationOptions even_load(std::string_view model, double rate) {
  SimulationOptions options;
  options.model = model_of(model);
  options.load.arrivals = Load::Arrivals::Even;
  options.load.rate = rate;
  options.duration = 20s;
  return options;
}

}  // namespace

TEST_CASE("fail: its share of requests fails, with its status") {
  auto options = even_load("fail:probability=0.3", 1000);
  const auto run = run_of(options, no_retries());
  CHECK(std::abs(run.success_ratio() - 0.7) < 5 * std::sqrt(0.21 / 20'000));
  // A request and its response are a message each.
  CHECK(run.p50_ms == doctest::Approx(10));
  options.duration = 2s;
  options.model = model_of("fail:probability=1,status=404");
  CHECK(run_of(options, every_second(3)).sends_per_call() == 1);
  options.model = model_of("fail:probability=1,status=503");
  CHECK(run_of(options, every_second(3)).sends_per_call() == 3);
}

TEST_CASE("simulated clients hedge as their policy says") {
  auto options = even_load("fail:probability=0.001", 1000);
  options.duration = 2s;
  const auto hedged = [&](const std::string& after) {
    return run_of(options,
                  policy_of(R"({"hedge": {"budget": "none", "after": ")" + after + "\"}}"));
  };
  CHECK(hedged("1ms").sends_per_call() > 1.5);
  CHECK(hedged("1s").sends_per_call() < 1.1);
}

TEST_CASE("capacity: so many requests in each window, the others are rejected at once") {
  auto options = even_load("capacity:rate=100,network=0ms", 150);
  const auto run = run_of(options, no_retries());
  for (std::size_t second = 1; second < 19; ++second) {
    CHECK(in_second(run, second, &Sample::succeeded) == 100);
    CHECK(in_second(run, second, &Sample::failed) == 50);
  }
  // A rate that is no whole number in a window is kept over several: 2.5 in each.
  options.model = model_of("capacity:rate=25,network=0ms");
  CHECK(std::abs(in_seconds(run_of(options, no_retries()), 0, 20, &Sample::succeeded) - 500) <= 1);
  options.model = model_of("capacity:rate=100,window=1s,network=0ms");
  const auto wide = run_of(options, no_retries());
  CHECK(wide.samples[51].succeeded == 15);  // the first two thirds of a second
  CHECK(wide.samples[59].succeeded == 0);
}

TEST_CASE("a rejection is a 503, a 429 or no response, and may have a Retry-After") {
  // Everything is rejected.
  const auto ends = [](std::string_view model, const PolicySet& policy) {
    auto options = one_call(model);
    return run_of(options, policy);
  };
  const auto run = ends("capacity:rate=0", every_second(3));
  CHECK(run.sends == 3);
  CHECK(run.finished_at_s == 2);
  CHECK(ends("capacity:rate=0,retry_after=3s", every_second(3)).finished_at_s == 6);
  CHECK(ends("capacity:rate=0,retry_after=1500ms", every_second(3)).finished_at_s == 3);
  CHECK(ends("capacity:rate=0,reject=429,retry_after=3s", every_second(3)).finished_at_s == 6);
  // A policy for which a 429 is final tells it from a 503.
  const auto only_503 = policy_of(
      R"({"max_attempts": 3, "budget": "none", "retry_on": {"statuses": [503], "throttle_statuses": []}})");
  CHECK(ends("capacity:rate=0", only_503).sends == 3);
  CHECK(ends("capacity:rate=0,reject=429", only_503).sends == 1);
  // No response: the limit of an attempt ends it.
  const auto limited = policy_of(
      R"({"max_attempts": 3, "budget": "none", "attempt_timeout": "4s", "backoff": {"kind": "none"}})");
  CHECK(ends("capacity:rate=0,reject=drop", limited).finished_at_s == 12);
  const auto without = policy_of(
      R"({"max_attempts": 3, "attempt_timeout": "none", "max_elapsed_time": "none", "budget": "none"})");
  const auto never = ends("capacity:rate=0,reject=drop", without);
  CHECK(never.unfinished == 1);
  CHECK(never.sends == 1);
}

TEST_CASE("queue: so many are served at once, so many wait, and the others are rejected") {
  auto options = one_call("queue:servers=2,service=1s,queue=3");
  options.clients = 7;
  const auto run = run_of(options, no_retries());
  CHECK(run.succeeded == 5);
  CHECK(in_second(run, 0, &Sample::failed) == 2);
  CHECK(in_second(run, 1, &Sample::succeeded) == 2);
  CHECK(in_second(run, 2, &Sample::succeeded) == 2);
  CHECK(in_second(run, 3, &Sample::succeeded) == 1);
  options.model = model_of("queue:servers=2,service=1s,queue=0,network=0ms");
  CHECK(run_of(options, no_retries()).succeeded == 2);
}

TEST_CASE("queue: the work for clients that have left is done all the same, or is left out") {
  // Each client gives up after 1.5 s; one request takes a second.
  const auto hasty = policy_of(R"({"max_attempts": 1, "attempt_timeout": "1500ms"})");
  auto options = one_call("queue:servers=1,service=1s");
  options.clients = 5;
  const auto worked = run_of(options, hasty);
  CHECK(worked.succeeded == 1);
  CHECK(worked.wasted == 4);
  CHECK(worked.finished_at_s == 1.5);
  options.model = model_of("queue:servers=1,service=1s,timeout_work=false,network=0ms");
  const auto dropped = run_of(options, hasty);
  CHECK(dropped.succeeded == 1);
  CHECK(dropped.wasted == 1);  // it had begun
}

TEST_CASE("slope: each request that is there already makes the next one slower") {
  const auto last = [](std::string_view model, int clients) {
    auto options = one_call(model);
    options.clients = clients;
    return run_of(options, no_retries()).finished_at_s;
  };
  CHECK(last("slope:base=1s,per_request=10ms", 1) == doctest::Approx(1));
  CHECK(last("slope:base=1s,per_request=10ms", 11) == doctest::Approx(1.1));
  CHECK(last("slope:base=1s,per_request=10ms,above=4", 11) == doctest::Approx(1.06));
  CHECK(last("slope:base=1s,per_request=0ms", 100) == doctest::Approx(1));
}

TEST_CASE("occ: of those who read the same version one can write, and none writes twice") {
  SimulationOptions options;
  options.clients = 20;
  options.model = model_of("occ:network=10ms");
  const auto run = run_of(options, policy_of(R"({"max_attempts": 1000, "max_elapsed_time": "none",
      "budget": "none", "backoff": {"kind": "none"}})"));
  // All messages take 10 ms, so in each round of 40 ms exactly one wins.
  CHECK(run.calls == 20);
  CHECK(run.succeeded == 20);
  CHECK(run.sends == 20 * 21 / 2);
  CHECK(run.finished_at_s == doctest::Approx(0.8));
  // A lost write is a 500: without retries, only one succeeds.
  CHECK(run_of(options, no_retries()).succeeded == 1);
}

TEST_CASE("trace: the recorded attempts in their order, and then again") {
  const TemporaryFile file(
      R"([{"attempts": [{"duration_ms": 100, "status": 503, "server_delay_ms": 2000},
                        {"duration_ms": 200, "error": {"kind": "receive"}},
                        {"duration_ms": 300, "status": 200}]}])");
  auto options = one_call("trace:file=" + file.path());
  const auto run = run_of(options, every_second(5));
  CHECK(run.sends == 3);
  CHECK(run.succeeded == 1);
  CHECK(run.finished_at_s == doctest::Approx(0.1 + 2 + 0.2 + 1 + 0.3));
  options.clients = 2;  // the second begins with the second attempt, and its retry gets the first
  CHECK(run_of(options, no_retries()).succeeded == 0);
  options.clients = 6;
  CHECK(run_of(options, no_retries()).succeeded == 2);
}

TEST_CASE("layers: each service calls the next with its policy, or with that of the run") {
  const auto sends = [](std::string_view model, const PolicySet& policy) {
    auto options = one_call(model);
    return run_of(options, policy).sends;
  };
  CHECK(sends("fail:probability=1,layers=1", every_second(3)) == 9);
  CHECK(sends(R"({"kind": "fail", "probability": 1, "layers": ["none"]})", every_second(3)) == 3);
  CHECK(
      sends(
          R"({"kind": "fail", "probability": 1, "layers": [{"max_attempts": 2, "budget": "none"}]})",
          every_second(3)) == 6);
  CHECK(sends(R"({"kind": "fail", "probability": 1, "layers": [
                   {"max_attempts": 2, "budget": "none"}, "none"]})",
              no_retries()) == 2);
  CHECK(sends("fail:probability=0,layers=3", every_second(3)) == 1);
  // A service answers with the status that it got, with a 504 after a timeout, and with a 502 after
  // any other error.
  const auto only = [](int status) {
    return policy_of(R"({"max_attempts": 3, "budget": "none", "retry_on": {"statuses": [)" +
                     std::to_string(status) + R"(], "throttle_statuses": []}})");
  };
  CHECK(sends(R"({"kind": "fail", "probability": 1, "layers": ["none"]})", only(500)) == 3);
  CHECK(sends(R"({"kind": "fail", "probability": 1, "layers": ["none"]})", only(502)) == 1);
  constexpr auto kSlow = R"({"kind": "queue", "service": "1h",
      "layers": [{"max_attempts": 1, "attempt_timeout": "1s"}]})";
  CHECK(sends(kSlow, only(504)) == 3);
  CHECK(sends(kSlow, only(500)) == 1);
  for (const auto* error : {"resolve", "connect", "send", "receive", "protocol", "timeout"}) {
    CAPTURE(error);
    const TemporaryFile file(R"([{"attempts": [{"duration_ms": 1, "error": {"kind": ")" +
                             std::string(error) + R"("}}]}])");
    const auto broken =
        R"({"kind": "trace", "file": ")" + file.path() + R"(", "layers": ["none"]})";
    const int expected = std::string_view(error) == "timeout" ? 504 : 502;
    for (const int status : {500, 502, 503, 504}) {
      CHECK(sends(broken, only(status)) == (status == expected ? 3 : 1));
    }
  }
}

TEST_CASE("a trigger leaves the server a share of its capacity") {
  // Each has 100 requests a second of capacity, and gets 80.
  for (const auto* const model :
       {"capacity:rate=100,network=0ms", "queue:servers=10,service=100ms,queue=0,network=0ms"}) {
    CAPTURE(model);
    auto options = even_load(model, 80);
    options.model.triggers = {trigger_of("at=5s,for=4s,capacity=0.25")};
    const auto run = run_of(options, no_retries());
    CHECK(in_seconds(run, 1, 5, &Sample::succeeded) == 320);
    CHECK(std::abs(in_seconds(run, 6, 9, &Sample::succeeded) - 75) <= 10);
    CHECK(std::abs(in_seconds(run, 11, 19, &Sample::succeeded) - 640) <= 10);
    options.model.triggers.front().capacity = 0;
    CHECK(in_seconds(run_of(options, no_retries()), 6, 9, &Sample::succeeded) == 0);
  }
  // Without capacity, slope and queue hold what they have until it is back.
  for (const auto* const model : {"slope:base=100ms", "queue:servers=1,service=100ms"}) {
    CAPTURE(model);
    auto options = one_call(model);
    options.model.triggers = {trigger_of("at=0s,for=4s,capacity=0")};
    CHECK(run_of(options, no_retries()).finished_at_s == doctest::Approx(4.1));
    options.model.triggers = {trigger_of("at=0s,for=4s,capacity=0.1")};
    CHECK(run_of(options, no_retries()).finished_at_s == doctest::Approx(1));
  }
}

TEST_CASE("a trigger lets a share of requests fail, with its status and Retry-After") {
  auto options = even_load("queue:servers=1000,service=1ms,network=0ms", 1000);
  options.model.triggers = {trigger_of("at=5s,for=4s,fail=0.4")};
  const auto run = run_of(options, no_retries());
  CHECK(in_seconds(run, 0, 5, &Sample::failed) == 0);
  CHECK(std::abs(in_seconds(run, 5, 9, &Sample::failed) - 1600) < 5 * std::sqrt(960));
  CHECK(in_seconds(run, 9, 20, &Sample::failed) == 0);

  const auto once = [](std::string_view trigger) {
    auto call = one_call("fail:probability=0");
    call.model.triggers = {trigger_of(trigger)};
    return run_of(call, every_second(10));
  };
  CHECK(once("at=0s,for=2500ms,fail=1").finished_at_s == 3);
  CHECK(once("at=0s,for=2500ms,fail=1,retry_after=2s").finished_at_s == 4);
  CHECK(once("at=0s,for=2500ms,fail=1,status=404").sends == 1);
  CHECK(once("at=0s,for=2500ms,fail=1,status=429").finished_at_s == 3);
}

TEST_CASE("a trigger multiplies the calls, or takes some away") {
  for (const auto* const load : {"open:rate=100,arrivals=even", "open:rate=100"}) {
    CAPTURE(load);
    auto options = even_load("fail:probability=0", 100);
    options.load = load_of(load);
    options.model.triggers = {trigger_of("at=4s,for=4s,load=3"), trigger_of("at=8s,for=2s,load=0"),
                              trigger_of("at=7s,for=1s,load=2"),
                              trigger_of("at=4s,for=4s,fail=0.5")};  // it changes no load
    const auto run = run_of(options, no_retries());
    CHECK(std::abs(in_seconds(run, 0, 4, &Sample::offered) - 400) < 100);
    CHECK(std::abs(in_seconds(run, 4, 7, &Sample::offered) - 900) < 150);
    CHECK(std::abs(in_seconds(run, 7, 8, &Sample::offered) - 600) < 125);  // both
    CHECK(in_seconds(run, 8, 10, &Sample::offered) == 0);
    CHECK(std::abs(in_seconds(run, 10, 20, &Sample::offered) - 1000) < 160);
  }
}

TEST_CASE("of triggers at one time the capacities multiply, and the worst failure counts") {
  auto options = even_load("capacity:rate=100,network=0ms", 100);
  options.model.triggers = {trigger_of("at=5s,for=4s,capacity=0.5"),
                            trigger_of("at=5s,for=4s,capacity=0.5")};
  const auto quarter = in_seconds(run_of(options, no_retries()), 5, 9, &Sample::succeeded);
  CHECK(std::abs(quarter - 100) <= 5);
  options.model.triggers = {trigger_of("at=5s,for=4s,fail=0.1"),
                            trigger_of("at=5s,for=4s,fail=1,status=404")};
  CHECK(in_seconds(run_of(options, no_retries()), 5, 9, &Sample::succeeded) == 0);
  CHECK(run_of(options, every_second(3)).sends == run_of(options, every_second(3)).calls);
}
