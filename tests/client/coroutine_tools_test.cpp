// when_any, run_group and Semaphore with tasks that end on the threads of a client.
#include <httpretry/client/client.hpp>
#include <httpretry/client/event_loop.hpp>
#include <httpretry/flow/semaphore.hpp>
#include <httpretry/flow/sleep.hpp>
#include <httpretry/flow/task_group.hpp>
#include <httpretry/flow/when_any.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Responds when so much time has passed as the path says, in microseconds; "/never" never, and
// "/lost" at once with a 404.
class Network final : public Transport {
 public:
  Task<Outcome> send(Request request, Call& call) override {
    const std::string path(request.parsed_url()->path());
    if (path == "/lost") co_return Response(404);
    const auto time = path == "/never" ? kForever : Duration(1us * std::stoi(path.substr(1)));
    ++running;
    const bool slept = co_await sleep_for(call.scheduler(), time, call.stop());
    --running;
    if (!slept) co_return Error(Errc::Canceled, "canceled");
    co_return Response(200, path);
  }
  std::atomic<int> running = 0;
};

ClientOptions options_for(const std::shared_ptr<Network>& network) {
  ClientOptions options;
  options.middlewares = {};
  options.transport = network;
  options.threads = 3;
  return options;
}

Task<> call_in_group(Client& client, int number, TaskGroup& group, std::atomic<int>& good) {
  CallOptions options;
  options.stop = group.stop();
  Outcome outcome = co_await client.co_send(
      Request::get("http://x/" + std::to_string(number % 7 * 10)), std::move(options));
  if (outcome) ++good;
  if (number == 40) throw std::runtime_error("forty");
}

Task<Result<int>> within_limit(Scheduler& loop, Semaphore& semaphore, std::atomic<int>& inside) {
  for (int i = 0; i < 20; ++i) {
    const auto permit = co_await semaphore.acquire(loop);
    CHECK(permit);
    CHECK(++inside <= 2);
    const bool slept = co_await sleep_for(loop, 5us);
    CHECK(slept);
    --inside;
  }
  co_return 1;
}

Task<int> count_to_three(Scheduler& loop) {
  Semaphore one(1);
  int count = 0;
  for (int i = 0; i < 3; ++i) {
    const auto permit = co_await one.acquire(loop);
    const bool slept = co_await sleep_for(loop, 10us);
    if (slept) ++count;
  }
  co_return count;
}

}  // namespace

TEST_CASE("coroutines of the program wait on a loop of a client") {
  Client client(options_for(std::make_shared<Network>()));
  CHECK(sync_wait(count_to_three(client.scheduler())) == 3);

  const auto loop = std::make_shared<EventLoop>();
  ClientOptions driven;
  driven.scheduler = loop;
  Client on_loop(driven);
  CHECK(&on_loop.scheduler() == loop.get());

  client.drain(0s);
  CHECK_THROWS_AS(static_cast<void>(client.scheduler()), Failure);
}

TEST_CASE("a task that is destroyed before the next turn of an EventLoop is not resumed") {
  const auto loop = std::make_shared<EventLoop>();
  std::optional<Task<bool>> task(sleep_for(*loop, 1s));
  CHECK(task->operator co_await().await_suspend(std::noop_coroutine()));
  task.reset();
  loop->turn();
  CHECK_FALSE(loop->time_left());
}

TEST_CASE("of several outcomes the first good one wins") {
  const auto network = std::make_shared<Network>();
  Client client(options_for(network));
  for (int round = 0; round < 20; ++round) {
    const std::stop_source losers;
    CallOptions options;
    options.stop = losers.get_token();
    std::vector<Task<Outcome>> calls;
    for (const auto* url : {"http://x/never", "http://x/lost", "http://x/20", "http://x/never"}) {
      calls.push_back(client.co_send(Request::get(url), options));
    }
    const auto first = sync_wait(when_any(losers, std::move(calls), succeeded));
    CHECK(first.index == 2);
    CHECK(network->running == 0);
  }
}

TEST_CASE("of calls on several threads one is first, and none runs when the race is over") {
  const auto network = std::make_shared<Network>();
  Client client(options_for(network));
  for (int round = 0; round < 100; ++round) {
    const std::stop_source losers;
    CallOptions options;
    options.stop = losers.get_token();
    std::vector<Task<Outcome>> calls;
    for (const auto* path : {"never", "20", "0", "30", "never", "1"}) {
      calls.push_back(client.co_send(Request::get(std::string("http://x/") + path), options));
    }
    const auto first = sync_wait(when_any(losers, std::move(calls)));
    REQUIRE(first.value);
    CHECK(first.value->body != "/never");
    CHECK(network->running == 0);
  }
}

TEST_CASE("a group of calls on several threads ends as a whole, well or with an exception") {
  const auto network = std::make_shared<Network>();
  Client client(options_for(network));
  for (const int calls : {30, 60}) {
    std::atomic<int> good = 0;
    auto body = [&](TaskGroup& group) -> Task<> {
      for (int i = 0; i < calls; ++i) group.start(call_in_group(client, i, group, good));
      co_return;
    };
    if (calls == 30) {
      sync_wait(run_group(body));
      CHECK(good == 30);
    } else {
      CHECK_THROWS_WITH_AS(sync_wait(run_group(body)), "forty", std::runtime_error);
    }
    CHECK(network->running == 0);
  }
}

TEST_CASE("a semaphore lets no more in than it has permits, from several loops") {
  const auto network = std::make_shared<Network>();
  Client client(options_for(network));
  Semaphore semaphore(2);
  std::atomic<int> inside = 0;
  for (int i = 0; i < 12; ++i) {
    static_cast<void>(
        client.spawn([&](Scheduler& loop) { return within_limit(loop, semaphore, inside); }));
  }
  client.drain(kNever);  // waits for them
  CHECK(inside == 0);
  CHECK(semaphore.try_acquire());
}
