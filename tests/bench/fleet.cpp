// What a rate costs that many processes share on a Redis server, beside a local one: a line of JSON
// each.
//
//   bench_fleet REDIS_URL [seconds]
//
// A thousand calls a second, one after the other, whose transport answers at once; the rate allows
// ten thousand. `cpu_us` is what a call costs, all threads of the process together; `wait_us`, what
// a call waits for its turn, at its median and its 99th percentile.
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

void measure(const char* name, std::shared_ptr<SharedState> state, bool with_rate, long seconds) {
  RetryPolicy policy;
  policy.budget.kind = BudgetPolicy::Kind::None;
  if (with_rate) {
    policy.guards.rate.emplace().requests = 10'000;
    policy.guards.rate->burst = 1000;
  }
  ClientOptions options;
  options.middlewares = {retry(policy), guards()};
  options.transport = std::make_shared<Immediate>();
  options.shared_state = std::move(state);
  Client client(options);
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
  std::printf("{\"state\": \"%s\", \"cpu_us\": %.2f, \"wait_us\": %.2f, \"wait_us_p99\": %.2f}\n",
              name, spent.cpu_us / static_cast<double>(calls), waits[waits.size() / 2],
              waits[waits.size() * 99 / 100]);
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
