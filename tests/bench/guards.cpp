// What a send pays for what may hold it back, and what a state takes in memory: a line of JSON
// each.
//
//   bench_guards [operations per measurement]
//   bench_guards operations rate|breaker|slots|all ask|end
//
// The second form does nothing else, for callgrind to count.
//
// `rate`, `breaker`, `slots` and `all` (the three and the pause) are what a send asks. `ask_ns` is
// what it takes to ask, which takes a token, and `end_ns` to tell how the send ended, which votes;
// `ns of 8 threads`, which share one state, is the time that passes for each of all their sends.
//
// `scope` is the heap that the state of a host takes while nobody sends to it, its key included,
// after a send in each of the ten tenths of a breaker's window; and how many of 200 000 hosts are
// kept.
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

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
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
    policy->rate->burst = 1'000'000'000;
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

constexpr Time kNow{1h};

SendGrant ask(SendLimits& limits, Time now = kNow) {
  SendAsk ask;
  ask.now = now;
  ask.random = 0.5;
  StateChanges changes;
  const auto grant = limits.enter(ask, changes);
  bench::demand(grant.held == QueuedBy::Nothing, "a send was held back");
  return grant;
}

void end(SendLimits& limits, const SendGrant& grant, Time now = kNow) {
  SendEnd end;
  end.responded = true;
  StateChanges changes;
  limits.leave(grant, &end, now, 0.5, changes);
}

// Of one batch after the other.
struct Costs {
  std::vector<Clock::duration> asking;
  std::vector<Clock::duration> ending;
};

constexpr std::size_t kAtOnce = 1000;

// Of one operation. Of all batches the middle one: others use the machine, too.
double median_ns(std::vector<Clock::duration> batches) {
  const auto middle = batches.begin() + static_cast<std::ptrdiff_t>(batches.size() / 2);
  std::nth_element(batches.begin(), middle, batches.end());
  return std::chrono::duration<double, std::nano>(*middle).count() / kAtOnce;
}

Costs send_many(SendLimits& limits, long operations) {
  std::vector<SendGrant> grants;
  grants.reserve(kAtOnce);
  Costs costs;
  for (long done = 0; done < operations; done += kAtOnce) {
    grants.clear();
    const auto began = Clock::now();
    for (std::size_t i = 0; i < kAtOnce; ++i) grants.push_back(ask(limits));
    const auto asked = Clock::now();
    for (const auto& grant : grants) end(limits, grant);
    costs.asking.push_back(asked - began);
    costs.ending.push_back(Clock::now() - asked);
  }
  return costs;
}

// One batch, whose asks or ends are counted.
void count_steps(const std::shared_ptr<GuardPolicy>& policy, long operations, bool asks) {
  const auto limits = local_state()->limits(keys_of(policy, "https://api.example.com"), kNow);
  std::vector<SendGrant> grants(static_cast<std::size_t>(operations));
  const auto ask_all = [&] {
    for (auto& grant : grants) grant = ask(*limits);
  };
  const auto end_all = [&] {
    for (const auto& grant : grants) end(*limits, grant);
  };
  if (!asks) ask_all();
  bench::spent_in([&] { asks ? ask_all() : end_all(); });
  if (asks) end_all();
}

void measure_sends(const char* name, const std::shared_ptr<GuardPolicy>& policy, long operations) {
  const auto keys = keys_of(policy, "https://api.example.com");
  const auto alone = send_many(*local_state()->limits(keys, kNow), operations);

  constexpr int kThreads = 8;
  const auto limits = local_state()->limits(keys, kNow);
  std::vector<std::thread> threads;
  const auto began = Clock::now();
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] { send_many(*limits, operations / kThreads); });
  }
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double, std::nano> together = Clock::now() - began;
  std::printf("{\"what\": \"%s\", \"ask_ns\": %.1f, \"end_ns\": %.1f, \"ns of 8 threads\": %.1f}\n",
              name, median_ns(alone.asking), median_ns(alone.ending),
              together.count() / static_cast<double>(operations));
}

void measure_scopes(const char* name, const std::shared_ptr<GuardPolicy>& policy) {
  constexpr std::size_t kHosts = 50'000;
  const auto state = local_state();
  const auto use = [&](std::size_t host) {
    const auto url = "https://host-" + std::to_string(host) + ".example.com";
    const auto limits = state->limits(keys_of(policy, url), kNow);
    for (int tenth = 0; tenth < 10; ++tenth) {
      const auto now = kNow + tenth * BreakerPolicy().window / 10;
      end(*limits, ask(*limits, now), now);
    }
  };
  const auto before = bench::heap_bytes();
  for (std::size_t host = 0; host < kHosts; ++host) use(host);
  const auto each = static_cast<double>(bench::heap_bytes() - before) / kHosts;
  for (std::size_t host = kHosts; host < 200'000; ++host) use(host);
  const auto states = state->states("", kNow).size();
  bench::demand(states <= 100'000, "there are more states than allowed");
  std::printf("{\"what\": \"scope\", \"of\": \"%s\", \"bytes\": %.0f, \"kept of 200000\": %zu}\n",
              name, each, states);
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
  const std::map<std::string, std::shared_ptr<GuardPolicy>> policies{
      {"rate", policy_with(true, false, false, false)},
      {"breaker", policy_with(false, true, false, false)},
      {"slots", policy_with(false, false, true, false)},
      {"all", policy_with(true, true, true, true)}};
  if (argc > 3) {
    count_steps(policies.at(argv[2]), operations, std::string(argv[3]) == "ask");
    return 0;
  }
  for (const auto& [name, policy] : policies) measure_sends(name.c_str(), policy, operations);
  for (const auto* const name : {"rate", "breaker", "slots"}) {
    measure_scopes(name, policies.at(name));
  }
  const auto calls = operations / 20;
  RetryPolicy held;
  held.guards.rate.emplace().requests = 1'000'000'000;
  held.guards.rate->burst = 1'000'000;
  held.guards.breaker.emplace();
  measure_calls("retry", {retry()}, calls);
  measure_calls("retry, guards", {retry(), guards()}, calls);
  measure_calls("retry, guards: rate, breaker", {retry(held), guards()}, calls);
}
