#include "policies.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// A network for any number of threads: of ten answers four are good, or none where it is down.
class BusyNetwork final : public Transport {
 public:
  explicit BusyNetwork(bool down = false) : down_(down) {}
  Task<Outcome> send(Request, Call& call) override {
    constexpr std::array kStatuses{200, 503, 503, 429, 200, 503, 404, 200, 503, 200};
    const auto number = count_.fetch_add(1, std::memory_order_relaxed);
    auto& clock = call.scheduler();
    const bool slept = co_await clock.sleep_until(clock.now() + 50us, call.stop());
    if (!slept) co_return Error(Errc::Canceled, "canceled");
    Response response(down_ ? 503 : kStatuses[number % kStatuses.size()]);
    response.exchange.sent = Sent::Answered;
    response.exchange.wire_sends = 1;
    co_return response;
  }

 private:
  const bool down_;
  std::atomic<std::size_t> count_ = 0;
};

// What is gone for good: each retry that was sent, but for the last of a call that succeeded.
std::int64_t spent_by(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  std::int64_t retries = 0;
  for (const auto& attempt : history.attempts) retries += attempt.retried ? 1 : 0;
  const bool waiting = history.stop_reason == Reason::Canceled && !history.attempts.empty() &&
                       history.attempts.back().retried;
  const bool success = history.stop_reason == Reason::Success;
  return retries - (retries > 0 && (success || waiting) ? 1 : 0);
}

constexpr std::int64_t kCapacity = 1'000'000;

RetryPolicy busy_policy() {
  auto policy = thrifty_policy(kCapacity, BudgetPolicy::Scope::Policy);
  policy.budget.refill = 0;  // nothing is ever given to a full budget: every token is accounted for
  policy.backoff = doubling(100us);
  return policy;
}

std::int64_t left_in(Client& client) {
  auto probe = Request::get("http://x/");
  probe.edit_options().retry = false;
  const auto outcome = client.send(probe);
  return *outcome->history.attempts.back().budget_left;
}

}  // namespace

TEST_CASE("not a token is lost or made by blocking calls on many threads") {
  ClientOptions options;
  options.middlewares = {retry(busy_policy())};
  options.transport = std::make_shared<BusyNetwork>();
  Client client(options);
  std::atomic<std::int64_t> spent = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) spent += spent_by(client.get("http://x/"));
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(spent > 0);
  CHECK(left_in(client) == kCapacity - 10 * spent);
}

TEST_CASE("not a token is lost or made by calls that are canceled from other threads") {
  ClientOptions options;
  auto policy = busy_policy();
  policy.backoff = doubling(50ms);
  options.middlewares = {retry(policy)};
  options.transport = std::make_shared<BusyNetwork>();
  options.threads = 2;
  Client client(options);
  std::atomic<std::int64_t> spent = 0;
  std::atomic<int> canceled = 0;
  std::atomic<int> ended = 0;
  constexpr int kCalls = 400;
  std::vector<std::stop_source> stops(kCalls);
  for (const auto& stop : stops) {
    CallOptions call;
    call.stop = stop.get_token();
    const auto heard = [&](const Outcome& outcome) {
      spent += spent_by(outcome);
      if (!outcome) ++canceled;
      ++ended;
      ended.notify_one();
    };
    client.send_then(Request::get("http://x/"), heard, call);
  }
  std::thread canceling([&] {
    for (std::size_t i = 0; i < stops.size(); i += 2) stops[i].request_stop();
  });
  canceling.join();
  for (auto count = ended.load(); count < kCalls; count = ended.load()) ended.wait(count);
  CHECK(canceled > 0);
  CHECK(left_in(client) == kCapacity - 10 * spent);
}

TEST_CASE("not a token is lost or made by tasks that are destroyed while their calls wait") {
  ClientOptions options;
  auto policy = busy_policy();
  policy.backoff = doubling(1h);
  policy.max_elapsed_time = kForever;
  options.middlewares = {retry(policy)};
  options.transport = std::make_shared<BusyNetwork>(true);
  Client client(options);
  for (int i = 0; i < 200; ++i) {
    auto task = client.co_send(Request::get("http://x/"));
    (void)task.operator co_await().await_suspend(std::noop_coroutine());
    if (i % 3 == 0) std::this_thread::yield();
  }
  // They end soon, and nobody is told: what is left settles at all of it.
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (left_in(client) != kCapacity && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  CHECK(left_in(client) == kCapacity);
}
