// What is said of a run, and what a policy allows before any run.
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Verdict = SimulationRun::Verdict;

SimulationOptions outage_of(std::string_view model, std::string_view trigger) {
  SimulationOptions options;
  options.model = model_of(model);
  if (!trigger.empty()) options.model.triggers = {trigger_of(trigger)};
  options.load.rate = 200;
  return options;
}

std::string budget_policy(const std::string& budget) {
  return R"({"max_attempts": 4, "max_elapsed_time": "none", "budget": )" + budget + "}";
}

}  // namespace

TEST_CASE("a run is stable, has recovered, is metastable or is overloaded" *
          doctest::test_suite("large")) {
  auto harmless = outage_of("queue:servers=100,service=50ms", "at=10s,for=5s,capacity=0.5");
  auto run = run_of(harmless, no_retries());
  CHECK(run.verdict == Verdict::Stable);
  CHECK(verdict_text(run) == "stable");
  CHECK(run.recovered_after == 0);

  auto fails = outage_of("queue:servers=100,service=50ms", "at=10s,for=5s,fail=1");
  run = run_of(fails, no_retries());
  CHECK(run.verdict == Verdict::Recovered);
  CHECK(run.recovered_after == 0);
  CHECK(verdict_text(run) == "recovered at once");

  // 240 a second at most, of which 40 are spare; the clients give up after 2 s, and the 2 000
  // requests that nobody waits for take 50 s of what is spare.
  auto slow = outage_of("queue:servers=12,service=50ms,queue=100000", "at=5s,for=10s,capacity=0");
  slow.duration = 120s;
  run = run_of(slow, policy_of(R"({"max_attempts": 1, "attempt_timeout": "2s"})"));
  CHECK(run.verdict == Verdict::Recovered);
  REQUIRE(run.recovered_after);
  CHECK(*run.recovered_after > 35);
  CHECK(*run.recovered_after < 50);
  CHECK(verdict_text(run) ==
        "recovered in " + std::to_string(static_cast<int>(*run.recovered_after)) + " s");

  run =
      run_of(slow, policy_of(R"({"max_attempts": 3, "attempt_timeout": "2s", "budget": "none"})"));
  CHECK(run.verdict == Verdict::Metastable);
  CHECK(!run.recovered_after);
  CHECK(verdict_text(run) == "metastable");
  CHECK(verdict_sentence(run).starts_with("metastable: it stays at 3.0 sends a call, "));
  CHECK(verdict_sentence(run).ends_with(" calls a second succeed"));

  auto too_much = outage_of("queue:servers=9,service=50ms,queue=100000", "");
  run = run_of(too_much, policy_of(R"({"max_attempts": 1, "attempt_timeout": "2s"})"));
  CHECK(run.verdict == Verdict::Overloaded);
  CHECK(!run.recovered_after);
  CHECK(verdict_text(run) == "overloaded");
}

TEST_CASE("without a trigger, a server that fails whatever the load is stable") {
  auto options = outage_of("fail:probability=1", "");
  const auto run = run_of(options, PolicySet());
  CHECK(run.verdict == Verdict::Stable);
  CHECK(!run.recovered_after);
}

TEST_CASE("with the load once, a run that soon ends is not metastable") {
  auto options = one_call("fail:probability=0");
  options.clients = 100;
  options.model.triggers = {trigger_of("at=0s,for=500ms,fail=1")};
  const auto run = run_of(options, policy_of(R"({"backoff": {"kind": "constant",
      "interval": "1s"}})"));
  CHECK(run.finished_at_s == 1);
  CHECK(run.succeeded == 100);
  CHECK(run.recovered_after == 0);
  CHECK(run.verdict == Verdict::Recovered);
}

TEST_CASE("recovery is counted from the end of the last trigger") {
  auto options = outage_of("queue:servers=100,service=50ms", "at=10s,for=5s,fail=1");
  options.model.triggers.push_back(trigger_of("at=20s,for=10s,fail=1"));
  const auto run = run_of(options, no_retries());
  CHECK(run.recovered_after == 0);
  CHECK(run.verdict == Verdict::Recovered);
}

TEST_CASE("the worst amplification follows from the attempts or from the budget") {
  struct Case {
    std::string policy;
    double w_l, at_first;
    std::optional<double> burst;
    std::optional<double> always = std::nullopt;
  };
  const Case cases[] = {
      {R"({"max_attempts": 1})", 1, 1, {100}},
      {R"({"max_attempts": 4, "budget": "none"})", 4, 4, {}},
      {R"({"max_attempts": 3, "budget": "none", "max_elapsed_time": "none"})", 3, 3, {}},
      // The last status that can be retried.
      {R"({"max_attempts": 3, "budget": "none", "max_elapsed_time": "none",
           "retry_on": {"statuses": [599], "throttle_statuses": []}})",
       3,
       3,
       {}},
      // Waits of 1 s in 3.5 s: sends at 0, 1, 2 and 3 s.
      {R"({"max_attempts": 100, "budget": "none", "max_elapsed_time": "3500ms",
           "backoff": {"kind": "constant", "interval": "1s"}})",
       4,
       4,
       {}},
      {budget_policy(
           R"({"kind": "tokens", "capacity": 500, "retry_cost": 5, "refill_on_success": 1})"),
       1.2, 4, 100},
      {budget_policy(
           R"({"kind": "tokens", "capacity": 100, "retry_cost": 10, "refill_on_success": 1})"),
       1.1, 4, 10},
      {budget_policy(
           R"({"kind": "tokens", "capacity": 10, "retry_cost": 1, "refill_on_success": 50})"),
       4, 4, 10},
      // A budget for two retries ends the first call already.
      {budget_policy(
           R"({"kind": "tokens", "capacity": 10, "retry_cost": 5, "refill_on_success": 1})"),
       1.2, 3, 2},
      // A throttle or a timeout may cost less than another failure.
      {budget_policy(R"({"kind": "tokens", "capacity": 20, "retry_cost": 10, "throttle_cost": 5,
           "refill_on_success": 1})"),
       1.2, 4, 4},
      {budget_policy(R"({"kind": "tokens", "capacity": 20, "retry_cost": 10, "timeout_cost": 5,
           "refill_on_success": 1})"),
       1.2, 4, 4},
      {budget_policy(R"({"kind": "tokens", "capacity": 20, "retry_cost": 10, "throttle_cost": 0,
           "refill_on_success": 1})"),
       4,
       4,
       {}},
      {budget_policy(R"({"kind": "ratio", "ratio": 0.2, "min_per_second": 10, "window": "10s"})"),
       1.2, 4, 100, 10},
      {budget_policy(R"({"kind": "ratio", "ratio": 0.1, "min_per_second": 0})"), 1.1, 1, 0, 0},
      {budget_policy(R"({"kind": "grpc", "max_tokens": 10, "token_ratio": 0.1})"), 1.1, 4, 5},
      {budget_policy(R"({"kind": "concurrent", "ratio": 0.2, "min": 3})"), 1.25, 4, {}, 3},
      {budget_policy(R"({"kind": "concurrent", "ratio": 0, "min": 0})"), 1, 1, {}, 0},
      {budget_policy(R"({"kind": "concurrent", "ratio": 1, "min": 0})"), 4, 4, {}, 0},
  };
  for (const auto& each : cases) {
    CAPTURE(each.policy);
    const auto bounds = bounds_of(policy_of(each.policy), Request::get("http://a/"));
    REQUIRE(bounds.w_l);
    CHECK(*bounds.w_l == doctest::Approx(each.w_l));
    CHECK(bounds.stable_below == doctest::Approx(1 / each.w_l));
    CHECK(bounds.sends_at_first == each.at_first);
    CHECK(bounds.burst == each.burst);
    CHECK(bounds.always == each.always);
  }
}

TEST_CASE("the contract's two: 4 attempts are stable below 25 %, and a budget of 20 % below 83 %") {
  const auto share = [](const std::string& policy) {
    return bounds_of(policy_of(policy), Request::get("http://a/")).stable_below;
  };
  CHECK(share(R"({"max_attempts": 4, "budget": "none"})") == 0.25);
  CHECK(share(budget_policy(R"({"kind": "ratio", "ratio": 0.2, "min_per_second": 0})")) ==
        doctest::Approx(0.8333).epsilon(0.001));
}

TEST_CASE("a policy without any limit is safe below no load") {
  const auto bounds = bounds_of(policy_of(R"({"max_attempts": 2000, "max_elapsed_time": "none",
      "budget": "none", "backoff": {"kind": "none"}})"),
                                Request::get("http://a/"));
  CHECK(!bounds.w_l);
  CHECK(bounds.stable_below == 0);
}

TEST_CASE("the amplification of a run is at most the bound: more where the budget is still full" *
          doctest::test_suite("large")) {
  for (const auto* const preset :
       {"standard", "curl", "aws-standard", "google-http-client", "none"}) {
    CAPTURE(preset);
    auto options = outage_of("fail:probability=1,status=503", "");
    options.clients = 10;
    options.duration = 30s;
    const auto run = run_of(options, preset_of(preset));
    REQUIRE(run.bounds.w_l);
    const auto calls = static_cast<double>(run.calls);
    const auto burst = run.bounds.burst.value_or(0) * options.clients;
    // The bound is for the mean of each wait. Real waits are random, so a few calls more fit in.
    CHECK(static_cast<double>(run.sends) <= 1.02 * calls * *run.bounds.w_l + burst);
    CHECK(run.sends_per_call() <= 1.02 * run.bounds.sends_at_first.value_or(0));
  }
}

TEST_CASE("seconds without a success are no recovery, though more succeed right after them") {
  SimulationOptions options;
  options.model = model_of("slope:base=1s,per_request=10ms,network=exponential(100ms)");
  options.model.triggers = {trigger_of("at=20s,for=5s,load=2")};
  options.load.rate = 40;
  options.duration = 120s;
  const auto run = run_of(options, policy_of(R"({"max_attempts": 3, "budget": "none",
      "attempt_timeout": "3s", "max_elapsed_time": "none",
      "backoff": {"kind": "exponential", "initial": "20s", "jitter": "full"}})"));
  REQUIRE(in_second(run, 27, &SimulationSample::succeeded) == 0);
  REQUIRE(run.recovered_after);
  CHECK(*run.recovered_after >= 3);
  CHECK(*run.recovered_after <= 15);
}
