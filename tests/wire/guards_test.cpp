// What `guards` does to a real server, as the server counts it.
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// When the throttle was sent, and how many responses came after it.
class Ledger final : public Observer {
 public:
  void exchange_ended(const Call& /*call*/, const Request& /*request*/, int /*number*/,
                      const Outcome& /*outcome*/) noexcept override {
    const std::lock_guard lock(mutex_);
    if (sent_after_ > 0) ++responses_;
  }
  // The server sends the throttle.
  void throttles() {
    const std::lock_guard lock(mutex_);
    throttled_ = Clock::now();
  }
  // A request after the throttle reaches the server. Whether the ramp allows it: one, and one more
  // for each response.
  bool arrives() {
    const std::lock_guard lock(mutex_);
    if (sent_after_ == 0) first_ = Clock::now();
    return sent_after_++ <= 2 * responses_;
  }
  void paused(const Call& /*call*/, const PauseBegun& /*pause*/) noexcept override {
    const std::lock_guard lock(mutex_);
    paused_ = true;
    changed_.notify_all();
  }
  bool wait_for_pause() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [this] { return paused_; });
  }
  [[nodiscard]] Duration quiet() const { return first_ - throttled_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool paused_ = false;
  Clock::time_point throttled_, first_;
  int sent_after_ = 0;
  int responses_ = 0;
};

PolicySet policy(const std::string& text) {
  return parse_policies(R"({"version": 1, "default": )" + text + "}", "policy.json").value();
}

}  // namespace

TEST_CASE("one 429 of fifty: the server sees nothing for the time it asked for, then a few") {
  constexpr int kAtOnce = 50;
  constexpr int kLater = 30;
  const auto ledger = std::make_shared<Ledger>();
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  std::atomic<int> too_many = 0;

  Step answers;
  answers.times = kAtOnce + kLater + 1;
  answers.respond = [&](const SeenRequest&) {
    std::unique_lock lock(mutex);
    const auto number = ++arrived;
    if (number > kAtOnce) {
      if (!ledger->arrives()) ++too_many;
      return Step(200);
    }
    changed.notify_all();
    changed.wait_for(lock, 30s, [&] { return arrived >= kAtOnce; });
    if (number != 1) return Step(200);
    ledger->throttles();
    return Step(429, Headers{{"Retry-After", "2"}});
  };
  FaultServer server({answers});

  ClientOptions options;
  options.policies = policy(R"({"max_attempts": 2, "budget": "none",
      "backoff": {"kind": "constant", "interval": "1ms"}})");
  options.observers = {ledger};
  Client client(options);
  std::vector<OutcomeFuture> calls;
  for (int i = 0; i < kAtOnce; ++i) calls.push_back(client.send_async(Request::get(server.url())));
  REQUIRE(server.wait_for_requests(kAtOnce, 30s));
  REQUIRE(ledger->wait_for_pause());
  for (int i = 0; i < kLater; ++i) calls.push_back(client.send_async(Request::get(server.url())));
  int good = 0;
  for (auto& call : calls) {
    const auto outcome = call.get();
    if (outcome && outcome->status == 200) ++good;
  }
  CHECK(good == kAtOnce + kLater);
  CHECK(server.requests() == kAtOnce + kLater + 1);
  CHECK(too_many == 0);
  CHECK(ledger->quiet() >= 2s);
}

TEST_CASE("eight threads: a rate and a breaker hold, by the server's count") {
  FaultServer server({Step(503)});
  ClientOptions options;
  options.policies = policy(R"({"max_attempts": 1, "pause": "none",
      "rate": {"limit": "200/s", "burst": 5},
      "breaker": {"kind": "consecutive", "failures": 20, "open_for": {"kind": "constant",
                  "interval": "1h"}}})");
  Client client(options);
  std::atomic<int> sent = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto outcome = client.get(server.url());
        ++(outcome ? sent : refused);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(sent + refused == 200);
  CHECK(server.requests() == static_cast<std::size_t>(sent));
  // Those that were on their way when it opened went out, too.
  CHECK(sent >= 20);
  CHECK(sent < 20 + 8);
}

TEST_CASE("a probe closes the circuit at its headers, before its body has come") {
  class Order final : public Observer {
   public:
    void circuit_changed(const Call& /*call*/, const CircuitChange& change) noexcept override {
      lines.emplace_back(to_string(change.to));
    }
    void call_ended(const Call& /*call*/, const Outcome& outcome) noexcept override {
      lines.push_back("call " + std::to_string(outcome ? outcome->status : 0));
    }
    std::vector<std::string> lines;
  };
  Step slow(200, std::string(10, 'x'));
  slow.fault = Fault::Drip;
  slow.interval = 20ms;
  FaultServer server({Step(503), slow});
  const auto order = std::make_shared<Order>();
  ClientOptions options;
  options.observers = {order};
  options.policies = policy(R"({"max_attempts": 1, "pause": "none",
      "breaker": {"kind": "consecutive", "failures": 1, "when_open": "wait",
                  "open_for": {"kind": "constant", "interval": "50ms"}}})");
  Client client(options);
  CHECK(client.get(server.url())->status == 503);
  CHECK(client.get(server.url())->body.size() == 10);
  CHECK(order->lines ==
        std::vector<std::string>{"open", "call 503", "half_open", "closed", "call 200"});
}
