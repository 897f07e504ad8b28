// The parts, one by one, with google-benchmark.
#include "passing.hpp"

#include "lib/core/flow/detail/run_queue.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/retry/decide.hpp>
#include <httpretry/testing/testing.hpp>

#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

using namespace httpretry;  // NOLINT

namespace {

Outcome answered(int status, const char* retry_after = nullptr, const char* body = "{}") {
  Response response(status, body);
  response.headers = {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
                      {"Content-Type", "application/json"},
                      {"Content-Length", "2"},
                      {"Connection", "keep-alive"}};
  if (retry_after != nullptr) response.headers.add("Retry-After", retry_after);
  return response;
}

void classifying(benchmark::State& state, const Outcome& outcome) {
  const RetryPolicy policy;
  for (auto _ : state) benchmark::DoNotOptimize(classify(policy, Observed(outcome, {})));
}

void deciding(benchmark::State& state, const Outcome& outcome) {
  const RetryPolicy policy;
  const auto classified = classify(policy, Observed(outcome, {}));
  RetryState facts;
  facts.failures = 3;
  Clocks clocks;
  clocks.started = clocks.now = Time(std::chrono::seconds(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(decide(policy, classified, facts, clocks, 0.5));
  }
}

void setting_a_header(benchmark::State& state) {
  Headers headers{{"Accept", "application/json"}, {"X-Request-Id", "1"}, {"User-Agent", "shop"}};
  for (auto _ : state) {
    headers.set("X-Request-Id", "7f3c9a52-1d0e-4b8a-9c61-0f2f6d5f1e77");
    benchmark::DoNotOptimize(headers);
  }
}

class Idle final : public Timer {
  void due() override {}
};

// Of as many: one is taken out, another put in.
void timers(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::mt19937_64 random(1);
  std::vector<Idle> idle(count);
  TimerQueue queue;
  for (auto& timer : idle) queue.add(timer, Time(Duration(random() >> 8U)));
  for (auto _ : state) {
    auto& timer = idle[random() % count];
    queue.remove(timer);
    queue.add(timer, Time(Duration(random() >> 8U)));
  }
  for (auto& timer : idle) queue.remove(timer);
}

Task<int> one() { co_return 1; }

detail::Detached hops(long count, std::shared_ptr<ManualScheduler> clock, long& sum) {
  for (long i = 0; i < count; ++i) {
    const auto task = one();
    sum += co_await task;
  }
  clock.reset();
}

// Made, awaited and gone: a frame each, from the heap.
void a_task(benchmark::State& state) {
  const auto clock = std::make_shared<ManualScheduler>();
  long sum = 0;
  for (auto _ : state) hops(1000, clock, sum);
  state.SetItemsProcessed(state.iterations() * 1000);
  benchmark::DoNotOptimize(sum);
}

class Prompt final : public Transport {
 public:
  Task<Outcome> send(Request /*request*/, Call& /*call*/) override { co_return Response(200); }
};

// A whole call in virtual time, without a network, through so many middlewares that do nothing.
void a_call(benchmark::State& state) {
  ClientOptions options;
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = std::make_shared<Prompt>();
  for (long i = 0; i < state.range(0); ++i) {
    options.middlewares.push_back(bench::passing());
  }
  Client client(options);
  const auto request = Request::get("http://host/");
  for (auto _ : state) benchmark::DoNotOptimize(client.send(request));
}

void a_call_with_retry(benchmark::State& state) {
  ClientOptions options;
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = std::make_shared<Prompt>();
  options.middlewares = {redirect(), retry()};
  Client client(options);
  const auto request = Request::get("http://host/");
  for (auto _ : state) benchmark::DoNotOptimize(client.send(request));
}

}  // namespace

BENCHMARK_CAPTURE(classifying, 200, answered(200));
BENCHMARK_CAPTURE(classifying, 503, answered(503));
BENCHMARK_CAPTURE(classifying, 503 retry after, answered(503, "2"));
BENCHMARK_CAPTURE(classifying, 400 with a reason in JSON,
                  answered(400, nullptr, R"({"__type":"ns#SlowDown","message":"slow"})"));
BENCHMARK_CAPTURE(deciding, 200, answered(200));
BENCHMARK_CAPTURE(deciding, 503, answered(503));
BENCHMARK_CAPTURE(deciding, 503 retry after, answered(503, "2"));
BENCHMARK(setting_a_header);
BENCHMARK(timers)->Arg(1000)->Arg(100'000);
BENCHMARK(a_task);
BENCHMARK(a_call)->Arg(0)->Arg(1)->Arg(5);
BENCHMARK(a_call_with_retry);
BENCHMARK_MAIN();
