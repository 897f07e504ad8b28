// How clients and tasks end: with calls in flight, on their own threads, in forked processes, and
// where the process has no more descriptors.
#include "event_loops.hpp"
#include "file_limit.hpp"
#include "holding_server.hpp"
#include "wire.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Counts the ends of many calls.
class Ends {
 public:
  auto teller() {
    return [this](const Outcome& outcome) {
      if (outcome) ++good_;
      if (!outcome && outcome.error().code == Errc::Canceled) ++canceled_;
      ++all_;
      all_.notify_one();
    };
  }
  void wait_for(int count) const {
    for (auto now = all_.load(); now < count; now = all_.load()) all_.wait(now);
  }
  [[nodiscard]] int all() const { return all_; }
  [[nodiscard]] int good() const { return good_; }
  [[nodiscard]] int canceled() const { return canceled_; }

 private:
  std::atomic<int> all_ = 0;
  std::atomic<int> good_ = 0;
  std::atomic<int> canceled_ = 0;
};

constexpr int kBackingOff = 3000;
constexpr int kHanging = 200;
constexpr int kInFlight = kBackingOff + kHanging;

Scenario busy_or_silent() {
  Scenario scenario({503});
  scenario.paths["/hang"] = Script({Fault::Hang});
  return scenario;
}

// Thousands of calls, most of which wait for their next attempt.
void fill(Client& client, const FaultServer& server, Ends& ends) {
  for (int i = 0; i < kHanging; ++i) {
    client.send_then(Request::get(server.url("/hang")), ends.teller());
  }
  for (int i = 0; i < kBackingOff; ++i) {
    client.send_then(Request::get(server.url("/busy")), ends.teller());
  }
  CHECK(server.wait_for_requests(kInFlight, 60s));
}

ClientOptions thousands() {
  auto policy = patient();
  policy.budget = BudgetPolicy();
  ClientOptions options;
  options.middlewares = {retry(policy)};
  options.threads = 2;
  // As many connections as the server has threads for.
  options.max_in_flight = kHanging + 50;
  return options;
}

// Must not be destroyed while a thread drives it.
class WatchedScheduler final : public Scheduler {
 public:
  explicit WatchedScheduler(bool& driven) : driven_(driven) {}
  ~WatchedScheduler() override { CHECK_FALSE(driven_); }
  [[nodiscard]] Time now() const override { return clock_.now(); }
  [[nodiscard]] WallTime wall_now() const override { return clock_.wall_now(); }
  void post(std::coroutine_handle<> handle) override { clock_.post(handle); }
  Task<bool> sleep_until(Time when, std::stop_token stop) override {
    return clock_.sleep_until(when, std::move(stop));
  }
  void run_until(const std::atomic<bool>& done) override {
    driven_ = true;
    clock_.run_until(done);
    driven_ = false;
  }

 private:
  bool& driven_;
  ManualScheduler clock_;
};

}  // namespace

TEST_CASE("a client that is destroyed ends thousands of calls, once each") {
  FaultServer server(busy_or_silent());
  Ends ends;
  {
    Client client(thousands());
    fill(client, server, ends);
    CHECK(ends.all() == 0);
  }
  CHECK(ends.all() == kInFlight);
  CHECK(ends.canceled() == kInFlight);
  CHECK(server.requests() == kInFlight);
}

TEST_CASE("a client may be destroyed on a thread of its own, with thousands of calls in flight") {
  FaultServer server(busy_or_silent());
  Ends ends;
  auto client = std::make_unique<Client>(thousands());
  fill(*client, server, ends);
  std::promise<void> gone;
  client->send_then(Request::get("nonsense"), [&](const Outcome&) {
    client.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  ends.wait_for(kInFlight);
  CHECK(ends.canceled() == kInFlight);
  CHECK(server.requests() == kInFlight);
}

TEST_CASE("a client may be destroyed inside of its own blocking call") {
  FaultServer server;
  std::unique_ptr<Client> client;
  ClientOptions options;
  options.middlewares = {
      on_outcome("last", [&](const Request&, Outcome&, Call&) { client.reset(); })};
  client = std::make_unique<Client>(options);
  const auto outcome = client->get(server.url("/"));
  CHECK(client == nullptr);
  CHECK(outcome);
}

TEST_CASE(
    "a client that is destroyed inside of its blocking call holds its scheduler until the end") {
  bool driven = false;
  std::unique_ptr<Client> client;
  ClientOptions options;
  options.scheduler = std::make_shared<WatchedScheduler>(driven);
  auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(200));
  options.transport = std::move(network);
  options.middlewares = {
      on_outcome("last", [&](const Request&, Outcome&, Call&) { client.reset(); })};
  client = std::make_unique<Client>(std::move(options));
  const auto outcome = client->get("http://x/");
  CHECK(client == nullptr);
  CHECK(outcome);
}

TEST_CASE("more calls than one multi handle takes are in flight on one loop together") {
  constexpr int kCalls = 1500;  // a multi has 256
  HoldingServer server(kCalls);
  Ends ends;
  auto client = Client::bare();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kCalls; ++i) {
      client.send_then(Request::get(server.url()), ends.teller());
    }
    ends.wait_for(kCalls * (round + 1));
  }
  CHECK(ends.good() == 2 * kCalls);
}

TEST_CASE("where the process may open no more files, a call says so, and the others go on") {
  const RawServer server([](int) {});  // accepts nobody: the descriptors are all for the client
  Ends ends;
  std::promise<Outcome> refused;
  std::atomic<bool> told = false;
  auto client = Client::bare();  // its end is the end of the calls that are held
  constexpr int kCalls = 100;
  {
    client.send_then(Request::get(server.url()), ends.teller());
    CHECK_FALSE(client.send_async(Request::get("nonsense")).get());
    const FileLimit limit(next_file() + 20);
    for (int i = 0; i < kCalls; ++i) {
      client.send_then(Request::get(server.url()), [&, tell = ends.teller()](Outcome outcome) {
        tell(outcome);
        if (!told.exchange(true)) refused.set_value(std::move(outcome));
      });
    }
    const auto outcome = refused.get_future().get();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::LocalShortage);
    CHECK_FALSE(outcome.error().permanent);
    CHECK(outcome.error().exchange.sent == Sent::Never);
    CHECK_MESSAGE(outcome.error().message.find("cannot open a socket: Too many open files (this "
                                               "process may have ") != std::string::npos,
                  outcome.error().message);
    CHECK_FALSE(client.send_async(Request::get("nonsense")).get());
    ends.wait_for(kCalls / 2);
  }
  CHECK(ends.all() < kCalls);  // some got a socket
  CHECK(ends.good() == 0);
}

TEST_CASE("a loop for which there are no descriptors is an error, not an exception") {
  auto client = Client::bare();
  const FileLimit limit(next_file());
  for (const auto& outcome : {client.get("http://127.0.0.1/"),
                              client.send_async(Request::get("http://127.0.0.1/")).get()}) {
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::LocalShortage);
    CHECK(outcome.error().history.stop_reason == Reason::LocalShortage);
    CHECK_MESSAGE(outcome.error().message.find("the call cannot begin: cannot make a loop: "
                                               "Too many open files (this process") == 0,
                  outcome.error().message);
  }
}

TEST_CASE("where the process may open no more files, a call on an EventLoop says so") {
  const auto loop = std::make_shared<EventLoop>();
  Client client = client_on(loop, {});
  const FileLimit limit(next_file());
  CHECK_THROWS_WITH(EventLoop(), doctest::Contains("cannot make an event loop"));
  std::string told;
  client.send_then(Request::get("http://127.0.0.1/"),
                   [&](const Outcome& outcome) { told = outcome.error().message; });
  CHECK_MESSAGE(
      told.find("the call cannot begin: cannot make a loop: Too many open files (this process") ==
          0,
      told);
}

TEST_CASE("a forked process may destroy the client that it inherited, and the parent goes on") {
  FaultServer server;
  auto client = std::make_unique<Client>();
  CHECK(client->get(server.url("/")));
  CHECK(client->send_async(Request::get(server.url("/"))).get());
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    client.reset();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(client->get(server.url("/")));
  CHECK(client->send_async(Request::get(server.url("/"))).get());
  CHECK(server.connections() == 2);
}

namespace {

class CountsEnds final : public Observer {
 public:
  void call_ended(const Call& /*call*/, const Outcome& /*outcome*/) noexcept override {
    ++ends_;
    ends_.notify_all();
  }
  void wait_for(int count) const {
    for (auto now = ends_.load(); now < count; now = ends_.load()) ends_.wait(now);
  }

 private:
  std::atomic<int> ends_ = 0;
};

}  // namespace

TEST_CASE("a task may be destroyed where it would resume, with its outcome on the way there") {
  FaultServer server;
  const auto ends = std::make_shared<CountsEnds>();
  ClientOptions watched;
  watched.middlewares = {};
  watched.observers = {ends};
  Client client(watched);
  ManualScheduler mine;
  CallOptions options;
  options.resume_on = &mine;
  bool resumed = false;
  const auto ask = [&]() -> Task<void> {
    Outcome outcome = co_await client.co_send(Request::get(server.url("/")), options);
    resumed = outcome.has_value();
  };
  for (const bool destroyed : {false, true}) {
    resumed = false;
    {
      const auto task = ask();
      (void)task.operator co_await().await_suspend(std::noop_coroutine());
      ends->wait_for(destroyed ? 3 : 1);
      (void)client.send_async(Request::get("nonsense")).get();  // so the outcome has been posted
      CHECK_FALSE(resumed);
      if (!destroyed) mine.run();
    }
    mine.run();
    CHECK(resumed == !destroyed);
  }
}

TEST_CASE("where a task that is gone would have resumed need not be there any more") {
  FaultServer server;
  const auto ends = std::make_shared<CountsEnds>();
  ClientOptions watched;
  watched.middlewares = {};
  watched.observers = {ends};
  Client client(watched);
  CallOptions options;
  const auto ask = [&]() -> Task<void> {
    Outcome outcome = co_await client.co_send(Request::get(server.url("/")), options);
  };
  {
    auto mine = std::make_unique<ManualScheduler>();
    options.resume_on = mine.get();
    {
      const auto task = ask();
      (void)task.operator co_await().await_suspend(std::noop_coroutine());
    }
    mine.reset();
  }
  ends->wait_for(1);
  (void)client.send_async(Request::get("nonsense")).get();  // so the outcome has been dropped
}

TEST_CASE("tasks are destroyed on the loop's thread at any moment of their calls") {
  FaultServer server({200, 503, {200, std::string(50'000, 'b')}});
  ClientOptions options;
  options.middlewares = {retry(hasty())};
  Client client(options);
  std::latch done(1);
  const auto work = client.spawn([&](Scheduler& loop) -> Task<Result<int>> {
    int i = 0;
    for (; i < 300; ++i) {
      const auto task = client.co_send(Request::get(server.url("/")));
      (void)task.operator co_await().await_suspend(std::noop_coroutine());
      const auto then = loop.now() + std::chrono::microseconds(13 * (i % 100));
      co_await loop.sleep_until(then, std::stop_token());
    }
    done.count_down();
    co_return i;
  });
  done.wait();
  CHECK(client.get(server.url("/")));
}
