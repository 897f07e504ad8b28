// Tests the counts of a run, and the verdicts on runs with given counts.
#include "lib/extras/simulate/recorder.hpp"

#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;
using simulation::Recorder;

namespace {

using Verdict = SimulationRun::Verdict;

constexpr std::size_t kSamplesOfSecond = 10;
constexpr std::size_t kMinute = 60 * kSamplesOfSecond;

// Samples in each of which 10 calls begin, and succeed.
std::vector<SimulationSample> good_samples(std::size_t count = kMinute) {
  SimulationSample sample;
  sample.offered = sample.sent = sample.succeeded = 10;
  return std::vector<SimulationSample>(count, sample);
}

// Makes this number of calls succeed in the seconds [first, last), spread over their samples.
void set_successes(SimulationRun& run, std::size_t first, std::size_t last,
                   std::uint32_t successes) {
  auto left = static_cast<std::uint32_t>((last - first) * kSamplesOfSecond);
  for (auto i = first * kSamplesOfSecond; i < last * kSamplesOfSecond; ++i, --left) {
    run.samples[i].succeeded = successes / left;
    successes -= run.samples[i].succeeded;
  }
}

struct Judged {
  Verdict verdict;
  std::optional<double> recovered_after;
};

// Judges a run of a minute with triggers, by default one from 20 s to 30 s.
Judged judged(SimulationRun run, std::vector<Trigger> triggers = {Trigger(20s, 10s)},
              Duration duration = 60s, Load::Kind load = Load::Kind::Open) {
  SimulationOptions options;
  options.duration = duration;
  options.load.kind = load;
  options.model.triggers = std::move(triggers);
  simulation::set_verdict(run, options);
  return {run.verdict, run.recovered_after};
}

Judged judged_with(std::size_t first, std::size_t last, std::uint32_t successes) {
  SimulationRun run;
  run.samples = good_samples();
  set_successes(run, first, last, successes);
  return judged(std::move(run));
}

// Returns the verdict on a run of three seconds without triggers, with these successes in the last.
Verdict verdict_at_end(ServerModel::Kind kind, std::uint32_t successes) {
  SimulationRun run;
  run.samples = good_samples(3 * kSamplesOfSecond);
  set_successes(run, 2, 3, successes);
  SimulationOptions options;
  options.model = ServerModel(kind);
  simulation::set_verdict(run, options);
  return run.verdict;
}

}  // namespace

TEST_CASE("calls and sends are counted in the sample of their time") {
  using Ending = Recorder::Ending;
  Recorder recorder;
  recorder.on_call_began(Time(0ms));
  recorder.on_call_began(Time(99ms));
  recorder.on_request_sent(Time(99ms));
  recorder.on_call_began(Time(100ms));
  recorder.on_request_sent(Time(250ms));
  recorder.on_call_ended(Ending::Succeeded, /*sent=*/true, 250ms, Time(250ms));
  recorder.on_call_ended(Ending::BudgetSpent, /*sent=*/false, 1s, Time(320ms));
  recorder.on_response_wasted();
  CHECK(recorder.calls() == 3);
  CHECK(recorder.sends() == 2);
  const auto run = recorder.take(1s);
  CHECK(run.calls == 3);
  CHECK(run.sends == 2);
  CHECK(run.succeeded == 1);
  CHECK(run.not_sent == 1);
  CHECK(run.wasted == 1);
  CHECK(run.budget_refusals == 1);
  CHECK(run.unfinished == 1);
  CHECK(run.finished_at_s == doctest::Approx(0.32));
  CHECK(run.p50_ms == 250);
  CHECK_FALSE(run.has_budget);
  REQUIRE(run.samples.size() == 4);
  const std::uint32_t expected[4][5] = {
      {2, 1, 0, 0, 2}, {1, 0, 0, 0, 3}, {0, 1, 1, 0, 2}, {0, 0, 0, 1, 1}};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    const auto& sample = run.samples[i];
    CHECK(sample.offered == expected[i][0]);
    CHECK(sample.sent == expected[i][1]);
    CHECK(sample.succeeded == expected[i][2]);
    CHECK(sample.failed == expected[i][3]);
    CHECK(sample.in_flight == expected[i][4]);
  }
}

TEST_CASE("a quantile is the value with the nearest rank") {
  const auto run_with_calls = [](int calls) {
    Recorder recorder;
    for (int i = 1; i <= calls; ++i) {
      recorder.on_call_began(Time(0ms));
      recorder.on_call_ended(Recorder::Ending::Succeeded, /*sent=*/true,
                             std::chrono::milliseconds(calls + 1 - i), Time(0ms));
    }
    return recorder.take(1s);
  };
  const auto many = run_with_calls(100);
  CHECK(many.p50_ms == 50);
  CHECK(many.p95_ms == 95);
  CHECK(many.p99_ms == 99);
  const auto three = run_with_calls(3);
  CHECK(three.p50_ms == 2);
  CHECK(three.p99_ms == 3);
  CHECK(run_with_calls(1).p50_ms == 1);
  CHECK(run_with_calls(0).p50_ms == 0);
}

TEST_CASE("the busiest second, and the busiest sample relative to the time in which calls begin") {
  const auto run_of_sends = [](Duration most_time) {
    Recorder recorder;
    for (const auto at : {0ms, 50ms, 99ms, 150ms, 250ms, 250ms, 250ms, 250ms, 299ms, 1000ms}) {
      recorder.on_request_sent(Time(at));
    }
    return recorder.take(most_time);
  };
  CHECK(run_of_sends(1s).peak_sends_per_second == 9);
  CHECK(run_of_sends(200ms).herd == 2.5);                // 5, and 4 in two samples
  CHECK(run_of_sends(200ms + 1ns).herd == 5. / 3);       // 5, and 9 in three samples
  CHECK(run_of_sends(2s).herd == doctest::Approx(5.5));  // 5, and 10 in the eleven that there are
  CHECK(Recorder().take(1s).herd == 0);
  Recorder late;
  late.on_request_sent(Time(250ms));
  CHECK(late.take(200ms).herd == 0);
}

TEST_CASE("a sample has the mean of the budgets that are known") {
  Recorder recorder;
  recorder.on_call_began(Time(0ms));
  recorder.on_budget_changed(std::nullopt, 10, Time(100ms));
  recorder.on_budget_changed(std::nullopt, 20, Time(200ms));
  recorder.on_budget_changed(20, 8, Time(250ms));
  recorder.on_budget_changed(10, 12, Time(400ms));
  const auto run = recorder.take(1s);
  CHECK(run.has_budget);
  REQUIRE(run.samples.size() == 5);
  CHECK(run.samples[0].budget == 0);
  CHECK(run.samples[1].budget == 10);
  CHECK(run.samples[2].budget == 9);
  CHECK(run.samples[3].budget == 9);
  CHECK(run.samples[4].budget == 10);
}

TEST_CASE("without triggers, a server is overloaded if fewer calls succeed at the end") {
  using Kind = ServerModel::Kind;
  // With 100 calls, a drop of two standard deviations (10 each) below 99 may be chance.
  for (const auto kind : {Kind::Capacity, Kind::Queue, Kind::Slope}) {
    CHECK(verdict_at_end(kind, 79) == Verdict::Stable);
    CHECK(verdict_at_end(kind, 78) == Verdict::Overloaded);
  }
  // The load makes no difference to these.
  for (const auto kind : {Kind::Fail, Kind::Occ, Kind::Trace}) {
    CHECK(verdict_at_end(kind, 0) == Verdict::Stable);
  }
  // Three samples can be compared, two cannot.
  for (const std::size_t samples : {2U, 3U}) {
    SimulationRun run;
    run.samples = good_samples(samples);
    run.samples.back().succeeded = 0;
    SimulationOptions options;
    options.model = ServerModel(Kind::Queue);
    simulation::set_verdict(run, options);
    CHECK(run.verdict == (samples == 2 ? Verdict::Stable : Verdict::Overloaded));
  }
}

TEST_CASE("with a trigger, ten good seconds are a recovery, and bad ones at the end are none") {
  // While the trigger lasts: 1000 calls, and two standard deviations.
  CHECK(judged_with(20, 30, 927).verdict == Verdict::Stable);
  CHECK(judged_with(20, 30, 927).recovered_after == 0);
  CHECK(judged_with(20, 30, 926).verdict == Verdict::Recovered);
  CHECK(judged_with(20, 30, 926).recovered_after == 0);
  // In the last ten seconds, three.
  CHECK(judged_with(50, 60, 896).verdict == Verdict::Stable);
  CHECK(judged_with(50, 60, 895).verdict == Verdict::Metastable);
  CHECK_FALSE(judged_with(50, 60, 895).recovered_after.has_value());
  // Each of the ten seconds: 100 calls, and three.
  CHECK(judged_with(30, 31, 69).recovered_after == 0);
  CHECK(judged_with(30, 31, 68).recovered_after == 1);
  CHECK(judged_with(39, 40, 69).recovered_after == 0);
  CHECK(judged_with(39, 40, 68).recovered_after == 10);
  CHECK(judged_with(39, 40, 68).verdict == Verdict::Recovered);
  // All of them together, two.
  CHECK(judged_with(30, 40, 930).recovered_after == 0);
  CHECK(judged_with(30, 40, 920).recovered_after == 1);
  // The last ten seconds are enough.
  CHECK(judged_with(30, 50, 0).recovered_after == 20);
}

TEST_CASE("the success before the first trigger is compared with that after the last one") {
  SimulationRun run;
  run.samples = good_samples();
  // If half of the calls failed before the trigger, half is good afterwards.
  set_successes(run, 0, 60, 3000);
  CHECK(judged(run).verdict == Verdict::Stable);
  CHECK(judged(run, {Trigger(100ms, 10s)}).verdict == Verdict::Stable);  // after one sample
  // Without time before it, everything should succeed.
  CHECK(judged(run, {Trigger(0s, 20s)}).verdict == Verdict::Metastable);
  // The earlier trigger may be the second in the list.
  run.samples = good_samples();
  set_successes(run, 5, 10, 0);
  CHECK(judged(run, {Trigger(20s, 10s), Trigger(5s, 5s)}).verdict == Verdict::Recovered);
  CHECK(judged(run, {Trigger(20s, 10s), Trigger(5s, 5s)}).recovered_after == 0);
  // The later one may be the first.
  run.samples = good_samples();
  set_successes(run, 30, 45, 0);
  CHECK(judged(run, {Trigger(40s, 5s), Trigger(20s, 10s)}).recovered_after == 0);
  CHECK(judged(run, {Trigger(20s, 10s)}).recovered_after == 15);
}

TEST_CASE("a recovery needs ten seconds in which calls begin, except with the load once") {
  SimulationRun run;
  run.samples = good_samples();
  CHECK(judged(run, {Trigger(0s, 0s)}, 10s).verdict == Verdict::Stable);
  CHECK(judged(run, {Trigger(0s, 0s)}, 9900ms).verdict == Verdict::Metastable);
  CHECK(judged(run, {Trigger(1s, 0s)}, 10s).verdict == Verdict::Metastable);
  CHECK(judged(run, {Trigger(1s, 1s)}, 2s, Load::Kind::Once).recovered_after == 0);
  CHECK(judged(run, {Trigger(1s, 1s)}, 2s, Load::Kind::Once).verdict == Verdict::Stable);
}

TEST_CASE("the sentence of a bad end has the rates of the last ten seconds with calls") {
  SimulationRun run;
  run.verdict = Verdict::Metastable;
  run.samples = std::vector<SimulationSample>(153);
  for (std::size_t i = 0; i < 153; ++i) {
    auto& sample = run.samples[i];
    sample.offered = i < 50 ? 100U : i < 150 ? 3U : 0U;
    sample.sent = i < 150 ? 6U : 600U;
    sample.succeeded = 1;
  }
  CHECK(verdict_sentence(run) ==
        "metastable: it stays at 2.0 sends a call, 10 of 30 calls a second succeed");
  // Rates below 10 have a decimal.
  run.verdict = Verdict::Overloaded;
  run.samples.resize(100);
  for (std::size_t i = 0; i < 100; ++i) {
    run.samples[i].offered = i == 0 ? 101U : i % 2 == 0 ? 1U : 2U;
    run.samples[i].succeeded = i == 0 ? 1U : i % 10 == 9 ? 10U : 0U;
  }
  CHECK(verdict_sentence(run) ==
        "overloaded: it ends at 2.4 sends a call, 10 of 25 calls a second succeed");
  run.samples[99].succeeded = 0;
  CHECK(verdict_sentence(run) ==
        "overloaded: it ends at 2.4 sends a call, 9.1 of 25 calls a second succeed");
  // Without any call, there are no rates.
  for (const std::size_t samples : {0U, 1U}) {
    run.samples = good_samples(samples);
    if (samples == 1) run.samples[0].offered = 0;
    CHECK(verdict_sentence(run) ==
          "overloaded: it ends at 0.0 sends a call, 0.0 of 0.0 calls a second succeed");
  }
}

TEST_CASE(
    "the sentence of a good end has the share of all calls, without decimals from 99.95 % on") {
  SimulationRun run;
  CHECK(verdict_sentence(run) == "stable: 0.0 % of all calls succeed, 0.00 sends a call");
  run.calls = 10'000;
  run.sends = 12'345;
  run.succeeded = 9994;
  CHECK(verdict_sentence(run) == "stable: 99.9 % of all calls succeed, 1.23 sends a call");
  run.succeeded = 9995;
  CHECK(verdict_sentence(run) == "stable: 100 % of all calls succeed, 1.23 sends a call");
  run.verdict = Verdict::Recovered;
  CHECK(verdict_sentence(run).starts_with("recovered at once: 100 % "));
  run.recovered_after = 0;
  CHECK(verdict_text(run) == "recovered at once");
  run.recovered_after = 1;
  CHECK(verdict_text(run) == "recovered in 1 s");
}
