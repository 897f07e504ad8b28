// What a rate costs that many processes share on a Redis server, beside a local one: a line of JSON
// each.
//
//   bench_fleet REDIS_URL [seconds]
//
// A thousand calls a second, one after the other, whose transport answers at once; the rate allows
// ten thousand. `cpu_us` is what a call costs, all threads of the process together; `wait_us`, what
// a call waits for its turn, at its median and its 99th percentile. `calls_per_s`: how
// many there are a second where each begins at once after the one before, and the rate allows them
// all.
#include "measure.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/fleet/redis.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

class Immediate final : public Transport {
 public:
  Task<Outcome> send(Request /*request*/, Call& /*call*/) override {
    Response response(200);
    response.exchange.sent = Sent::Answered;
    response.exchange.wire_sends = 1;
    co_return response;
  }
};

// `rate`: requests a second; 0: no limit.
ClientOptions options_with(std::shared_ptr<SharedState> state, std::int64_t rate) {
  RetryPolicy policy;
  policy.budget.kind = BudgetPolicy::Kind::None;
  if (rate > 0) {
    policy.guards.rate.emplace().requests = rate;
    policy.guards.rate->burst = rate / 10;
  }
  ClientOptions options;
  options.middlewares = {retry(policy), guards()};
  options.transport = std::make_shared<Immediate>();
  options.shared_state = std::move(state);
  return options;
}

double calls_per_second(std::shared_ptr<SharedState> state, bool with_rate, long seconds) {
  Client client(options_with(std::move(state), with_rate ? 10'000'000 : 0));
  const auto request = Request::get("https://api.example.com/v1/other");
  const auto send = [&] { bench::demand(client.send(request).has_value(), "a call failed"); };
  for (int call = 0; call < 500; ++call) send();
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::seconds(seconds);
  long calls = 0;
  for (; Clock::now() < end; ++calls) send();
  return static_cast<double>(calls) / std::chrono::duration<double>(Clock::now() - begin).count();
}

void measure(const char* name, const std::shared_ptr<SharedState>& state, bool with_rate,
             long seconds) {
  Client client(options_with(state, with_rate ? 10'000 : 0));
  const auto request = Request::get("https://api.example.com/v1/items");
  std::vector<double> waits;
  const auto send = [&](Clock::time_point when) {
    std::this_thread::sleep_until(when);
    const auto outcome = client.send(request);
    bench::demand(outcome.has_value(), "a call failed");
    const auto queued = outcome->exchange.timings.queued;
    waits.push_back(std::chrono::duration<double, std::micro>(queued).count());
  };
  auto next = Clock::now();
  for (int call = 0; call < 500; ++call) send(next += 1ms);
  waits.clear();
  const auto calls = 1000 * seconds;
  waits.reserve(static_cast<std::size_t>(calls));
  next = Clock::now();
  const auto spent = bench::spent_in([&] {
    for (long call = 0; call < calls; ++call) send(next += 1ms);
  });
  std::sort(waits.begin(), waits.end());
  std::printf(
      "{\"state\": \"%s\", \"cpu_us\": %.2f, \"wait_us\": %.2f, \"wait_us_p99\": %.2f, "
      "\"calls_per_s\": %.0f}\n",
      name, spent.cpu_us / static_cast<double>(calls), waits[waits.size() / 2],
      waits[waits.size() * 99 / 100], calls_per_second(state, with_rate, seconds));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_fleet REDIS_URL [seconds]\n");
    return 2;
  }
  const auto seconds = argc > 2 ? std::atol(argv[2]) : 10;
  measure("none", nullptr, false, seconds);
  measure("local", local_state(), true, seconds);
  measure("redis", redis(argv[1]), true, seconds);
}
