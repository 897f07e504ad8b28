// Calls on a loop that the program drives.
#include "../open_files.hpp"
#include "event_loops.hpp"
#include "raw_server.hpp"
#include "sinks.hpp"

#include <httpretry/flow/start.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <set>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Scenario fails_once() {
  Scenario scenario({{503}, {200, "good"}});
  scenario.paths["/hang"] = Script({Fault::Hang});
  return scenario;
}

Task<int> get_twice(Client& client, std::string url, Scheduler* then) {
  CallOptions options;
  options.resume_on = then;
  const Outcome first = co_await client.co_send(Request::get(url), options);
  const Outcome second = co_await client.co_send(Request::get(url), options);
  co_return (first ? first->status : 0) + (second ? second->status : 0);
}

Task<bool> sleep(Scheduler& scheduler, Duration wait) {
  const bool slept = co_await scheduler.sleep_until(scheduler.now() + wait, std::stop_token());
  co_return slept;
}

}  // namespace

TEST_CASE("all send functions that do not block run their calls in the turns of the loop") {
  FaultServer server(fails_once());
  const auto loop = std::make_shared<EventLoop>();
  auto client = client_on(loop, {retry(hasty())});
  std::multiset<std::thread::id> ran_on;
  client.send_then(Request::get(server.url()), [&](const Outcome& outcome) {
    CHECK(history_of(outcome).attempts.size() == 2);
    CHECK(outcome->body == "good");
    ran_on.insert(std::this_thread::get_id());
  });
  turn_until(*loop, [&] { return !ran_on.empty(); });

  auto future = client.send_async(Request::get(server.url()));
  turn_until(*loop, [&] { return future.wait_for(0s) == std::future_status::ready; });
  CHECK(future.get()->status == 200);

  int sum = 0;
  start(get_twice(client, server.url(), nullptr), [&](const Result<int>& result) {
    sum = *result;
    ran_on.insert(std::this_thread::get_id());
  });
  turn_until(*loop, [&] { return sum != 0; });
  CHECK(sum == 400);

  const auto work = client.spawn([&](Scheduler&) -> Task<Result<int>> {
    ran_on.insert(std::this_thread::get_id());
    co_return 5;
  });
  CHECK(ran_on.size() == 2);
  turn_until(*loop, [&] { return work.ready(); });
  CHECK(ran_on.count(std::this_thread::get_id()) == 3);
}

TEST_CASE("a loop with nothing to do waits without a limit, and its descriptor is silent") {
  FaultServer server({{200, "good"}});
  EventLoop empty;
  CHECK_FALSE(empty.time_left());
  CHECK_FALSE(is_readable(empty));
  start(empty, sleep(empty, 0s), [](const Result<bool>&) {});
  CHECK(is_readable(empty));

  const auto loop = std::make_shared<EventLoop>();
  auto client = client_on(loop, {});
  bool ended = false;
  client.send_then(Request::get(server.url()), [&](const Outcome&) { ended = true; });
  CHECK(loop->time_left() == 0ms);
  CHECK(is_readable(*loop));
  turn_until(*loop, [&] { return ended; });
  turn_until(*loop, [&] { return loop->time_left() != 0ms && !is_readable(*loop); });
}

TEST_CASE("a post from another thread, also the first, makes the descriptor readable") {
  FaultServer server({{200, "good"}});
  const auto loop = std::make_shared<EventLoop>();
  auto client = client_on(loop, {});
  for (int round = 0; round < 3; ++round) {
    turn_until(*loop, [&] { return loop->time_left() != 0ms && !is_readable(*loop); });
    std::future<Outcome> future;
    std::thread([&] { future = client.send_async(Request::get(server.url())); }).join();
    CHECK(is_readable(*loop));
    turn_until(*loop, [&] { return future.wait_for(0s) == std::future_status::ready; });
    CHECK(future.get()->status == 200);

    turn_until(*loop, [&] { return loop->time_left() != 0ms && !is_readable(*loop); });
    bool slept = false;
    std::thread([&] {
      start(*loop, sleep(*loop, 1ms), [&](const Result<bool>& result) { slept = *result; });
    }).join();
    CHECK(is_readable(*loop));
    turn_until(*loop, [&] { return slept; });
  }
}

TEST_CASE("the time that is left is that of the next wait, rounded up") {
  bool slept = false;  // told of the long wait, too, when the loop ends
  const auto loop = std::make_shared<EventLoop>();
  start(*loop, sleep(*loop, 90min), [&](const Result<bool>& result) { slept = *result; });
  loop->turn();
  CHECK(loop->time_left() == 1h);
  const auto began = std::chrono::steady_clock::now();
  start(*loop, sleep(*loop, 2ms), [&](const Result<bool>& result) { slept = *result; });
  loop->turn();
  CHECK(loop->time_left() <= 2ms);
  turn_until(*loop, [&] { return slept; });
  CHECK(std::chrono::steady_clock::now() - began >= 2ms);
}

TEST_CASE("a limit of time ends a call, though nothing happens on its socket") {
  FaultServer server(fails_once());
  const auto loop = std::make_shared<EventLoop>();
  auto client = client_on(loop, {});
  CallOptions options;
  options.timeout = 30ms;
  std::optional<Outcome> ended;
  client.send_then(
      Request::get(server.url("/hang")), [&](Outcome outcome) { ended = std::move(outcome); },
      options);
  turn_until(*loop, [&] { return ended.has_value(); });
  CHECK(timed_out(*ended));
  CHECK(history_of(*ended).elapsed >= 30ms);
}

TEST_CASE("a coroutine resumes on the loop that it asks for") {
  FaultServer server({{200, "good"}});
  const auto loop = std::make_shared<EventLoop>();
  Client client;  // on its own threads
  std::thread::id ended_on;
  start(get_twice(client, server.url(), loop.get()),
        [&](const Result<int>&) { ended_on = std::this_thread::get_id(); });
  turn_until(*loop, [&] { return ended_on != std::thread::id(); });
  CHECK(ended_on == std::this_thread::get_id());
}

TEST_CASE("a transport of the program carries the exchanges of an EventLoop, too") {
  const auto loop = std::make_shared<EventLoop>();
  const auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(503), 1ms).say(Response(200, "scripted"), 1ms);
  auto options = options_on(loop, {retry(hasty())});
  options.transport = network;
  Client client(options);
  std::string body;
  client.send_then(Request::get("http://x/"),
                   [&](const Outcome& outcome) { body = outcome->body; });
  turn_until(*loop, [&] { return !body.empty(); });
  CHECK(body == "scripted");
}

TEST_CASE("the work of a turn is bounded, also where a small body decodes to a huge one") {
  constexpr std::size_t kWhole = std::size_t{16} << 20;
  constexpr std::size_t kMostInTurn = std::size_t{512} << 10;  // and what is read behind 256 KiB
  Step huge(200, std::string(kWhole, 'z'));
  huge.gzip = true;
  FaultServer server(Scenario{huge});
  const auto loop = std::make_shared<EventLoop>();
  auto client = client_on(loop, {});
  std::size_t taken = 0;
  bool ended = false;
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  request.edit_options().sink = pass_to([&](std::string_view part) {
    taken += part.size();
    return true;
  });
  client.send_then(request, [&](const Outcome&) { ended = true; });
  std::size_t most = 0;
  while (!ended) {
    const auto before = taken;
    wait_and_turn(*loop);
    most = std::max(most, taken - before);
  }
  CHECK(taken == kWhole);
  CHECK(most <= kMostInTurn);
}

TEST_CASE("several clients share a loop, and each may end before the others") {
  FaultServer server(fails_once());
  const auto loop = std::make_shared<EventLoop>();
  const auto files = open_files();
  auto stays = client_on(loop, {retry(hasty())});
  bool canceled = false;
  {
    auto goes = client_on(loop, {retry(hasty())});
    goes.send_then(Request::get(server.url("/hang")), [&](const Outcome& outcome) {
      canceled = !outcome && outcome.error().code == Errc::Canceled;
    });
    turn_until_seen(*loop, [&] { return server.requests() == 1; });
  }
  CHECK_FALSE(canceled);  // nobody has turned the loop
  turn_until(*loop, [&] { return canceled; });
  bool good = false;
  stays.send_then(Request::get(server.url()),
                  [&](const Outcome& outcome) { good = succeeded(outcome); });
  turn_until(*loop, [&] { return good; });
  { const auto gone = std::exchange(stays, Client::bare()); }
  turn_until_seen(*loop, [&] { return open_files() == files; });
}

TEST_CASE("a loop and its client may be destroyed in any order while calls are in flight") {
  FaultServer server(fails_once());
  for (const bool loop_first : {true, false}) {
    CAPTURE(loop_first);
    int canceled = 0;
    auto loop = std::make_shared<EventLoop>();
    auto client = std::make_unique<Client>(client_on(loop, {retry(patient())}));
    const auto tell = [&](const Outcome& outcome) {
      if (!outcome && outcome.error().code == Errc::Canceled) ++canceled;
    };
    const auto before = server.requests();
    client->send_then(Request::get(server.url("/hang")), tell);
    turn_until_seen(*loop, [&] { return server.requests() == before + 1; });
    client->send_then(Request::get(server.url("/hang")), tell);  // has not begun
    bool slept = true;
    start(*loop, sleep(*loop, 1h), [&](const Result<bool>& result) { slept = *result; });
    if (loop_first) {
      loop.reset();
      CHECK(canceled == 0);  // the client shares it
      client.reset();
    } else {
      client.reset();
      CHECK(canceled == 0);
      loop.reset();
    }
    CHECK(canceled == 2);
    CHECK_FALSE(slept);
  }
}

TEST_CASE("a callback may destroy the client and the loop that it runs on") {
  FaultServer server(fails_once());
  auto loop = std::make_shared<EventLoop>();
  auto client = std::make_unique<Client>(client_on(loop, {}));
  int canceled = 0;
  bool ended = false;
  client->send_then(Request::get(server.url("/hang")), [&](const Outcome&) { ++canceled; });
  client->send_then(Request::get(server.url()), [&](const Outcome&) {
    client.reset();
    loop.reset();
    ended = true;
  });
  while (!ended) wait_and_turn(*loop);
  CHECK(loop == nullptr);
  CHECK(canceled == 1);
}

TEST_CASE("a call whose middleware waits for something else does not hold up the end of the loop") {
  struct ForEver {
    std::coroutine_handle<>* handle;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[gnu::noinline]] void await_suspend(std::coroutine_handle<> self) const { *handle = self; }
    void await_resume() const noexcept {}
  };
  std::coroutine_handle<> waiting;
  const auto files = open_files();
  auto loop = std::make_shared<EventLoop>();
  auto client = std::make_unique<Client>(
      client_on(loop, {middleware("waits", [&](Request, Call&, Next) -> Task<Outcome> {
                  const ForEver wait{&waiting};
                  co_await wait;
                  co_return Response(200);
                })}));
  bool ended = false;
  client->send_then(Request::get("http://127.0.0.1/"), [&](const Outcome&) { ended = true; });
  turn_until(*loop, [&] { return waiting != nullptr; });
  client.reset();
  SUBCASE("it never ends") {
    loop.reset();
    CHECK_FALSE(ended);
    CHECK(open_files() > files);  // the call may still use the client's own loop
    static std::coroutine_handle<> never_freed;
    never_freed = waiting;
  }
  SUBCASE("it ends before the loop does") {
    waiting.resume();
    turn_until(*loop, [&] { return ended; });
  }
}

TEST_CASE("on the thread that drives the loop, send drives it; elsewhere it does not need it") {
  FaultServer server({{200, "good"}});
  std::optional<Outcome> inner;
  bool ended = false;  // the last call ends with the loop
  const auto loop = std::make_shared<EventLoop>();
  auto options = options_on(loop, {});
  options.max_in_flight = 1;  // a send that did not drive the loop would wait for ever
  Client client(options);
  client.send_then(Request::get(server.url()), [&](const Outcome&) {
    inner = client.get(server.url());
    ended = true;
  });
  CHECK(client.get(server.url()));
  CHECK_FALSE(ended);  // before the first turn nobody drives it
  loop->turn();
  CHECK(client.get(server.url()));
  CHECK(ended);
  CHECK(inner->error().code == Errc::Internal);  // in a turn it would wait for itself

  std::future<Outcome> elsewhere =
      std::async(std::launch::async, [&] { return client.get(server.url()); });
  CHECK(elsewhere.get()->status == 200);

  std::thread([&] { loop->turn(); }).join();  // from then on that thread drives it
  ended = false;
  client.send_then(Request::get("nonsense"), [&](const Outcome&) { ended = true; });
  CHECK(client.get(server.url()));
  CHECK_FALSE(ended);
}

TEST_CASE("drain on the thread that drives the loop drives it, and cancels the rest") {
  FaultServer server(fails_once());
  const auto loop = std::make_shared<EventLoop>();
  loop->turn();  // this thread drives it
  for (const bool in_time : {true, false}) {
    CAPTURE(in_time);
    auto client = client_on(loop, {retry(hasty())});
    int ended = 0;
    client.send_then(Request::get(server.url(in_time ? "/" : "/hang")),
                     [&](const Outcome&) { ++ended; });
    const auto ends = client.drain(std::chrono::steady_clock::now() + (in_time ? 60s : 0s));
    CHECK(ended == 1);
    CHECK(ends.succeeded == (in_time ? 1 : 0));
    CHECK(ends.canceled == (in_time ? 0 : 1));
    CHECK(client.get(server.url()).error().code == Errc::Canceled);
  }
}

TEST_CASE("a forked process may destroy the loop that it inherited, and the parent goes on") {
  FaultServer server({{200, "good"}});
  auto loop = std::make_shared<EventLoop>();
  auto client = std::make_unique<Client>(client_on(loop, {}));
  loop->turn();
  CHECK(client->get(server.url()));
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    client.reset();
    loop.reset();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(client->get(server.url()));
  CHECK(server.connections() == 1);
}
