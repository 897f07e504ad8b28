// The end of a client on its own loops, with threads that send meanwhile.
#include "policies.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/client/event_loop.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Time now() { return std::chrono::steady_clock::now(); }

// Responds soon, or never. Counts the exchanges.
class Network final : public Transport {
 public:
  explicit Network(Duration time) : time_(time) {}
  Task<Outcome> send(Request, Call& call) override {
    count_.fetch_add(1);
    count_.notify_all();
    auto& clock = call.scheduler();
    const bool slept = co_await clock.sleep_until(later(clock.now(), time_), call.stop());
    if (!slept) co_return Error(Errc::Canceled, "canceled");
    co_return Response(200);
  }
  [[nodiscard]] int count() const { return count_.load(); }
  void wait_for(int count) const {
    for (auto seen = count_.load(); seen < count; seen = count_.load()) count_.wait(seen);
  }

 private:
  const Duration time_;
  std::atomic<int> count_ = 0;
};

ClientOptions options_for(std::shared_ptr<Transport> network,
                          std::vector<MiddlewarePtr> chain = {}) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.transport = std::move(network);
  options.threads = 2;
  return options;
}

bool refused(const Outcome& outcome) {
  return !outcome && outcome.error().message.find("was drained before") != std::string::npos;
}

// Sends with one of the four functions until a call is refused; how many were good.
int send_until_refused(Client& client, int way) {
  for (int good = 0;; ++good) {
    const auto request = Request::get("http://x/");
    Outcome outcome = Response();
    if (way == 0) outcome = client.send(request);
    if (way == 1) outcome = client.send_async(request).get();
    if (way == 2) outcome = sync_wait(client.co_send(request));
    if (way == 3) {
      std::promise<Outcome> promise;
      client.send_then(request, [&](Outcome value) { promise.set_value(std::move(value)); });
      outcome = promise.get_future().get();
    }
    if (refused(outcome)) return good;
    CHECK(outcome);
  }
}

}  // namespace

TEST_CASE("calls of all send functions on many threads end well, or are refused, in a drain") {
  const auto network = std::make_shared<Network>(20us);
  Client client(options_for(network));
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { good += send_until_refused(client, i % 4); });
  }
  network->wait_for(200);
  const auto result = client.drain(kNever);
  for (auto& thread : threads) thread.join();
  CHECK(result.canceled == 0);
  CHECK(result.failed == 0);
  CHECK(result.succeeded <= 8);
  CHECK(good >= 192);
}

TEST_CASE("calls are refused while a drain ends, and after it") {
  const auto network = std::make_shared<Network>(20us);
  Client client(options_for(network));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      send_until_refused(client, 0);
      for (int after = 0; after < 1000; ++after) CHECK(refused(client.get("http://x/")));
    });
  }
  network->wait_for(50);
  static_cast<void>(client.drain(kNever));
  for (auto& thread : threads) thread.join();
}

TEST_CASE("calls on an EventLoop and on other threads end well, or are refused, in a drain") {
  const auto network = std::make_shared<Network>(20us);
  const auto loop = std::make_shared<EventLoop>();
  auto options = options_for(network);
  options.scheduler = loop;
  Client client(options);
  loop->turn();  // so that this thread drives it
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { good += send_until_refused(client, i % 4); });
  }
  while (network->count() < 200) loop->turn();
  const auto result = client.drain(kNever);
  for (auto& thread : threads) thread.join();
  CHECK(result.canceled == 0);
  CHECK(result.failed == 0);
  CHECK(good >= 192);
}

TEST_CASE(
    "calls that would never end are canceled at the deadline of a drain, whatever sent them") {
  const auto network = std::make_shared<Network>(kForever);
  Client client(options_for(network));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { CHECK(client.get("http://x/").error().code == Errc::Canceled); });
  }
  std::atomic<int> canceled = 0;
  for (int i = 0; i < 20; ++i) {
    client.send_then(Request::get("http://x/"), [&](const Outcome& outcome) {
      if (!outcome && outcome.error().code == Errc::Canceled) ++canceled;
    });
  }
  network->wait_for(23);
  const auto result = client.drain(now() + 10ms);
  for (auto& thread : threads) thread.join();
  CHECK(result.canceled == 23);
  CHECK(canceled == 20);
}

TEST_CASE("a coroutine may await the drain, and destroy the client after it") {
  for (const auto time : {Duration(1ms), kForever}) {
    CAPTURE(time.count());
    const auto network = std::make_shared<Network>(time);
    auto client = std::make_unique<Client>(options_for(network));
    std::atomic<int> ended = 0;
    auto blocked = std::thread([&, &client = *client] {
      static_cast<void>(client.get("http://x/"));
      ++ended;
    });
    for (int i = 0; i < 5; ++i) {
      client->send_then(Request::get("http://x/"), [&](const Outcome&) {
        CHECK_THROWS_AS(client->drain(kNever), std::logic_error);  // on a loop's thread
        ++ended;
      });
    }
    network->wait_for(6);
    const auto deadline = time == kForever ? now() + 10ms : kNever;
    auto end = [&]() -> Task<std::size_t> {
      const auto result = co_await client->co_drain(deadline);
      client.reset();
      co_return result.canceled;
    };
    CHECK(sync_wait(end()) == (time == kForever ? 6 : 0));
    blocked.join();
    CHECK(ended == 6);
  }
}

TEST_CASE("spawned work that would never end is canceled at the deadline of a drain") {
  const auto network = std::make_shared<Network>(1ms);
  Client client(options_for(network));
  std::atomic<bool> slept = true;
  const auto work = client.spawn([&](Scheduler& loop) -> Task<Result<int>> {
    slept = co_await loop.sleep_until(kNever, std::stop_token());
    co_return 7;
  });
  CHECK(client.drain(now() + 1ms).canceled == 0);
  CHECK_FALSE(slept);
  CHECK(work.ready());
}

TEST_CASE("the end of a client requests the stop of its calls, and so does their own stop") {
  struct Seen {
    std::mutex mutex;
    std::vector<std::stop_token> tokens;
  };
  for (const bool by_drain : {true, false}) {
    CAPTURE(by_drain);
    const auto network = std::make_shared<Network>(kForever);
    Seen seen;
    const auto look = on_request("look", [&](Request&, Call& call) {
      const std::lock_guard lock(seen.mutex);
      seen.tokens.push_back(call.stop());
    });
    auto client =
        std::make_unique<Client>(options_for(network, {look, timeout(1h), retry(), look}));
    std::stop_source never;
    std::stop_source one;
    CallOptions stoppable;
    stoppable.stop = never.get_token();
    std::vector<OutcomeFuture> calls;
    calls.push_back(client->send_async(Request::get("http://x/")));
    calls.push_back(client->send_async(Request::get("http://x/"), stoppable));
    auto blocked =
        std::thread([&, &client = *client] { static_cast<void>(client.get("http://x/")); });
    network->wait_for(3);
    for (const auto& token : seen.tokens) CHECK_FALSE(token.stop_requested());
    stoppable.stop = one.get_token();
    auto stopped = client->send_async(Request::get("http://x/"), stoppable);
    network->wait_for(4);
    CHECK(seen.tokens.size() == 8);
    one.request_stop();
    CHECK(stopped.get().error().code == Errc::Canceled);
    CHECK(std::count_if(seen.tokens.begin(), seen.tokens.end(),
                        [](const auto& token) { return token.stop_requested(); }) == 2);
    if (by_drain) CHECK(client->drain(now()).canceled == 3);
    if (!by_drain) client.reset();
    blocked.join();
    for (const auto& token : seen.tokens) CHECK(token.stop_requested());
    for (auto& call : calls) CHECK(call.get().error().code == Errc::Canceled);
  }
}
