// How many exchanges may be under way at once, in virtual time; and on many threads.
#include "conversation.hpp"
#include "policies.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

struct Gate : Conversation {
  // The most that were under way at once is what the limit is about.
  std::vector<std::string> order;
  std::vector<Outcome> outcomes;

  Client client_of(int in_all, int per_origin, std::vector<MiddlewarePtr> chain = {}) const {
    ClientOptions options;
    options.middlewares = std::move(chain);
    options.scheduler = clock;
    options.transport = network;
    options.random = fixed_random(0.5);
    options.max_in_flight = in_all;
    options.max_in_flight_per_origin = per_origin;
    return Client(options);
  }
  void send(Client& client, const std::string& url, CallOptions options = CallOptions()) {
    client.send_then(
        Request::get(url),
        [this, url](Outcome outcome) {
          order.push_back(url);
          outcomes.push_back(std::move(outcome));
        },
        std::move(options));
    clock->run();
  }
  [[nodiscard]] std::vector<std::string> sent_urls() const {
    std::vector<std::string> urls;
    for (const auto& seen : network->requests()) urls.push_back(seen.request.url());
    return urls;
  }
};

using Urls = std::vector<std::string>;

}  // namespace

TEST_CASE("no more than the limit are under way, and the rest follow as they came") {
  Gate gate;
  gate.network->say(Response(200), 1s);
  auto client = gate.client_of(2, 0);
  for (const auto* url : {"http://a/1", "http://b/2", "http://c/3", "http://a/4", "http://b/5"}) {
    gate.send(client, url);
  }
  CHECK(gate.sends() == 2);
  gate.clock->advance(1s);
  CHECK(gate.sends() == 4);
  gate.clock->advance(2s);
  CHECK(gate.sent_urls() ==
        Urls{"http://a/1", "http://b/2", "http://c/3", "http://a/4", "http://b/5"});
  REQUIRE(gate.outcomes.size() == 5);
  CHECK(gate.outcomes[0]->exchange.timings.queued == 0s);
  CHECK(gate.outcomes[2]->exchange.timings.queued == 1s);
  CHECK(gate.outcomes[4]->exchange.timings.queued == 2s);
}

TEST_CASE("each of the two limits holds alone, and 0 is no limit") {
  for (const int in_all : {0, 1, 2, 4}) {
    for (const int per_origin : {0, 1, 2, 4}) {
      CAPTURE(in_all);
      CAPTURE(per_origin);
      Gate gate;
      gate.network->say(Response(200), 1s);
      auto client = gate.client_of(in_all, per_origin);
      for (const auto* url :
           {"http://a/1", "http://b/1", "http://a/2", "http://b/2", "http://a/3", "http://b/3"}) {
        gate.send(client, url);
      }
      const int of_origins = per_origin == 0 ? 6 : 2 * std::min(per_origin, 3);
      CHECK(gate.sends() == (in_all == 0 ? of_origins : std::min(in_all, of_origins)));
      gate.clock->advance(6s);
      CHECK(gate.outcomes.size() == 6);
    }
  }
}

TEST_CASE("an origin at its limit keeps nobody else waiting") {
  Gate gate;
  gate.network->say(Response(200), 1s);
  auto client = gate.client_of(3, 1);
  for (const auto* url :
       {"http://a/1", "http://a/2", "http://b/3", "http://a:81/4", "http://c/5"}) {
    gate.send(client, url);
  }
  CHECK(gate.sent_urls() == Urls{"http://a/1", "http://b/3", "http://a:81/4"});
  gate.clock->advance(1s);
  CHECK(gate.sends() == 5);
  gate.clock->advance(1s);
  CHECK(gate.outcomes.size() == 5);
}

TEST_CASE("a wait for admission can be called off, and costs the next one nothing") {
  Gate gate;
  gate.network->say(Response(200), 1s);
  auto client = gate.client_of(1, 0);
  std::stop_source stop;
  CallOptions stopped;
  stopped.stop = stop.get_token();
  CallOptions hurried;
  hurried.timeout = 500ms;
  gate.send(client, "http://a/1");
  gate.send(client, "http://a/2", stopped);
  gate.send(client, "http://a/3", hurried);
  gate.send(client, "http://a/4");
  stop.request_stop();
  gate.clock->run();
  REQUIRE(gate.outcomes.size() == 1);
  CHECK(gate.outcomes[0].error().code == Errc::Canceled);
  CHECK(gate.outcomes[0].error().curl_code == 42);
  CHECK(gate.outcomes[0].error().message.find("canceled while waiting for admission to http://a") !=
        std::string::npos);
  CHECK(gate.outcomes[0].error().exchange.sent == Sent::Never);
  gate.clock->advance(500ms);
  REQUIRE(gate.outcomes.size() == 2);
  CHECK(gate.outcomes[1].error().code == Errc::Timeout);
  CHECK(gate.outcomes[1].error().curl_code == 28);
  CHECK(gate.outcomes[1].error().message.find(
            "timed out while waiting for admission to http://a") != std::string::npos);
  CHECK(gate.outcomes[1].error().exchange.timings.queued == 500ms);
  CHECK(gate.outcomes[1].error().exchange.queued_by == QueuedBy::MaxInFlight);
  gate.clock->advance(1500ms);
  CHECK(gate.sent_urls() == Urls{"http://a/1", "http://a/4"});
  CHECK(gate.order == Urls{"http://a/2", "http://a/3", "http://a/1", "http://a/4"});
}

TEST_CASE("the wait for admission is not charged to the attempt, but to the call") {
  Gate gate;
  gate.network->say(Response(200), 3s);
  auto policy = steady_policy();
  policy.attempt_timeout = 4s;
  auto client = gate.client_of(1, 0, {retry(policy), timeout(4s)});
  gate.send(client, "http://a/1");
  gate.send(client, "http://a/2");
  CallOptions bounded;
  bounded.timeout = 7s;
  gate.send(client, "http://a/3", bounded);
  gate.clock->advance(10s);
  REQUIRE(gate.outcomes.size() == 3);
  CHECK(gate.outcomes[1]->history.attempts.size() == 1);
  CHECK(gate.outcomes[1]->history.attempts[0].exchange().timings.queued == 3s);
  CHECK(gate.outcomes[1]->history.attempts[0].duration == 6s);
  CHECK(gate.outcomes[2].error().code == Errc::Timeout);  // 1 s was left of the call's 7
  CHECK(gate.outcomes[2].error().history.elapsed == 7s);
}

TEST_CASE("a timeout above retry includes the wait for admission") {
  Gate gate;
  gate.network->say(Response(200), 3s);
  auto client = gate.client_of(1, 0, {timeout(4s), retry(steady_policy())});
  gate.send(client, "http://a/1");
  gate.send(client, "http://a/2");
  gate.clock->advance(10s);
  REQUIRE(gate.outcomes.size() == 2);
  CHECK(gate.outcomes[1].error().code == Errc::Timeout);
  CHECK(gate.outcomes[1].error().history.elapsed == 4s);
}

TEST_CASE("a call that waits to be sent again keeps nobody from being admitted") {
  Gate gate;
  gate.network->say(Response(503)).say(Response(200));
  auto client = gate.client_of(1, 1, {retry(steady_policy())});
  gate.send(client, "http://a/1");
  gate.send(client, "http://a/2");
  CHECK(gate.order == Urls{"http://a/2"});
  gate.clock->advance(1s);
  CHECK(gate.order == Urls{"http://a/2", "http://a/1"});
}

TEST_CASE("the end of the client ends what waits for admission") {
  Gate gate;
  gate.network->say(Response(200), 1h);
  {
    auto client = gate.client_of(1, 0);
    for (int i = 0; i < 100; ++i) gate.send(client, "http://a/");
  }
  gate.clock->run();
  REQUIRE(gate.outcomes.size() == 100);
  for (const auto& outcome : gate.outcomes) CHECK(outcome.error().code == Errc::Canceled);
  CHECK(gate.sends() == 1);
}

TEST_CASE("limits that make no sense are refused") {
  Gate gate;
  CHECK_THROWS_AS(gate.client_of(-1, 0), std::invalid_argument);
  CHECK_THROWS_AS(gate.client_of(0, -1), std::invalid_argument);
}

namespace {

// Counts what is under way, in all and by origin.
class Counting final : public Transport {
 public:
  Task<Outcome> send(Request request, Call& call) override {
    auto& of_origin = by_origin_[request.url().at(7) == 'a' ? 0 : 1];
    note(++all_, most_);
    note(++of_origin, most_of_origin_);
    auto& clock = call.scheduler();
    const bool slept = co_await clock.sleep_until(clock.now() + 200us, call.stop());
    --of_origin;
    --all_;
    if (!slept) co_return Error(Errc::Canceled, "canceled");
    co_return Response(200);
  }
  [[nodiscard]] int most() const { return most_; }
  [[nodiscard]] int most_of_origin() const { return most_of_origin_; }

 private:
  static void note(int now, std::atomic<int>& most) {
    for (auto seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
    }
  }
  std::atomic<int> all_ = 0;
  std::array<std::atomic<int>, 2> by_origin_{};
  std::atomic<int> most_ = 0;
  std::atomic<int> most_of_origin_ = 0;
};

}  // namespace

TEST_CASE("the limits hold over all threads, whoever is canceled") {
  const auto network = std::make_shared<Counting>();
  ClientOptions options;
  options.middlewares = {};
  options.transport = network;
  options.threads = 3;
  options.max_in_flight = 7;
  options.max_in_flight_per_origin = 5;
  Client client(options);
  constexpr int kCalls = 600;
  std::atomic<int> ended = 0;
  std::atomic<int> canceled = 0;
  std::vector<std::stop_source> stops(kCalls);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = thread; i < kCalls; i += 3) {
        CallOptions call;
        call.stop = stops[static_cast<std::size_t>(i)].get_token();
        client.send_then(
            Request::get(i % 2 == 0 ? "http://a/" : "http://b/"),
            [&](const Outcome& outcome) {
              canceled += outcome ? 0 : 1;
              ++ended;
              ended.notify_one();
            },
            call);
      }
      for (int i = 0; i < 20; ++i) CHECK(client.get("http://a/"));
      for (int i = thread; i < kCalls; i += 6) stops[static_cast<std::size_t>(i)].request_stop();
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto count = ended.load(); count < kCalls; count = ended.load()) ended.wait(count);
  CHECK(network->most() <= 7);
  CHECK(network->most() > 5);
  CHECK(network->most_of_origin() <= 5);
  CHECK(client.get("http://a/"));  // every place was given back
}
