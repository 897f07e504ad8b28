// What a send pays for what may hold it back, and what a state takes in memory: a line of JSON
// each.
//
//   bench_guards [operations per measurement]
//
// `token` asks a rate, `vote` a breaker, `slot` a limit of concurrent sends, and tells it how the
// send ended; `all` does so with the three and the pause together. Each once with one thread and
// once with eight that share one state; `ns` is for one send, with eight threads as the time that
// passes for each of all sends together.
//
// `scope` is the heap that a host with a rate and a breaker takes while nobody sends to it, and
// `bounded` how many of 200 000 hosts are kept.
//
// `call` is a whole call of a client in virtual time, whose transport answers at once: without
// `guards`, with it and nothing to hold back, and with a rate and a breaker that hold nothing back.
#include "measure.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

std::shared_ptr<GuardPolicy> policy_with(bool rate, bool breaker, bool slots, bool pause) {
  auto policy = std::make_shared<GuardPolicy>();
  policy->pause.enabled = pause;
  if (rate) {
    policy->rate.emplace().requests = 1'000'000'000;
    policy->rate->burst = 1'000'000;
  }
  if (breaker) policy->breaker.emplace();
  if (slots) policy->concurrency.emplace().max = 1'000'000;
  return policy;
}

LimitKeys keys_of(const std::shared_ptr<GuardPolicy>& policy, const std::string& host) {
  LimitKeys keys;
  keys.policy = policy;
  if (policy->pause.enabled) keys.pauses[0] = "pause " + host;
  if (policy->rate) keys.rate = "rate " + host;
  if (policy->breaker) keys.breaker = "breaker " + host;
  if (policy->concurrency) keys.slots = "concurrency " + host;
  return keys;
}

void send(SendLimits& limits, Time now) {
  SendAsk ask;
  ask.now = now;
  ask.random = 0.5;
  StateChanges changes;
  const auto grant = limits.enter(ask, changes);
  bench::demand(grant.held == QueuedBy::Nothing, "a send was held back");
  SendEnd end;
  end.responded = true;
  limits.leave(grant, &end, now, 0.5, changes);
}

double ns_of_sends(const std::shared_ptr<GuardPolicy>& policy, int threads, long operations) {
  const auto state = local_state();
  const auto limits = state->limits(keys_of(policy, "https://api.example.com"), Time(1h));
  std::atomic<bool> go = false;
  std::vector<std::thread> running;
  const auto work = [&](int thread) {
    while (!go.load()) std::this_thread::yield();
    for (long i = thread; i < operations; i += threads) send(*limits, Time(1h + i * 1us));
  };
  for (int thread = 0; thread < threads; ++thread) running.emplace_back(work, thread);
  const auto began = Clock::now();
  go = true;
  for (auto& thread : running) thread.join();
  return std::chrono::duration<double, std::nano>(Clock::now() - began).count() /
         static_cast<double>(operations);
}

void measure_sends(const char* name, const std::shared_ptr<GuardPolicy>& policy, long operations) {
  for (const int threads : {1, 8}) {
    std::printf("{\"what\": \"%s\", \"threads\": %d, \"ns\": %.1f}\n", name, threads,
                ns_of_sends(policy, threads, operations));
  }
}

// Of hosts that were sent to once.
void measure_scopes() {
  constexpr std::size_t kHosts = 50'000;
  const auto policy = policy_with(true, true, false, false);
  const auto state = local_state();
  const auto use = [&](std::size_t host) {
    const auto name = "https://host-" + std::to_string(host) + ".example.com";
    send(*state->limits(keys_of(policy, name), Time(1h)), Time(1h));
  };
  const auto before = bench::heap_bytes();
  for (std::size_t host = 0; host < kHosts; ++host) use(host);
  const auto each =
      static_cast<double>(bench::heap_bytes() - before) / static_cast<double>(2 * kHosts);
  std::printf("{\"what\": \"scope\", \"bytes\": %.0f}\n", each);
  for (std::size_t host = kHosts; host < 200'000; ++host) use(host);
  std::printf("{\"what\": \"bounded\", \"states\": %zu, \"MiB\": %.1f}\n",
              state->states("", Time(1h)).size(),
              static_cast<double>(bench::heap_bytes() - before) / (1024 * 1024));
}

class Immediate final : public Transport {
 public:
  Task<Outcome> send(Request /*request*/, Call& /*call*/) override {
    Response response(200);
    response.exchange.sent = Sent::Answered;
    response.exchange.wire_sends = 1;
    co_return response;
  }
};

void measure_calls(const char* name, std::vector<MiddlewarePtr> chain, long calls) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = std::make_shared<Immediate>();
  Client client(options);
  const auto request = Request::get("https://api.example.com/v1/items");
  for (int i = 0; i < 100; ++i) bench::demand(client.send(request).has_value(), "a call failed");
  const auto spent = bench::spent_in([&] {
    for (long i = 0; i < calls; ++i) {
      bench::demand(client.send(request).has_value(), "a call failed");
    }
  });
  std::printf("{\"what\": \"call\", \"with\": \"%s\", \"cpu_ns\": %.0f, \"allocations\": %.2f}\n",
              name, spent.cpu_us * 1000 / static_cast<double>(calls),
              static_cast<double>(spent.allocations) / static_cast<double>(calls));
}

}  // namespace

int main(int argc, char** argv) {
  const auto operations = argc > 1 ? std::atol(argv[1]) : 2'000'000;
  measure_sends("token", policy_with(true, false, false, false), operations);
  measure_sends("vote", policy_with(false, true, false, false), operations);
  measure_sends("slot", policy_with(false, false, true, false), operations);
  measure_sends("all", policy_with(true, true, true, true), operations);
  measure_scopes();
  const auto calls = operations / 20;
  RetryPolicy held;
  held.guards.rate.emplace().requests = 1'000'000'000;
  held.guards.rate->burst = 1'000'000;
  held.guards.breaker.emplace();
  measure_calls("retry", {retry()}, calls);
  measure_calls("retry, guards", {retry(), guards()}, calls);
  measure_calls("retry, guards: rate, breaker", {retry(held), guards()}, calls);
}
