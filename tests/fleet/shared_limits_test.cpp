// Gates that share their limits on a real server, each as one process has it.
#include "redis_server.hpp"

#include "lib/fleet/redis_state.hpp"
#include "lib/guard/gate.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/fleet/redis.hpp>
#include <httpretry/flow/log.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {

Time now_is() { return std::chrono::steady_clock::now(); }

// A process: its connection, and its gate.
struct Process {
  explicit Process(const RedisServer& server, Duration reply_timeout = 5s, int workers = 1) {
    fleet::RedisState::Options options;
    options.address = server.address();
    options.address.workers = workers;
    options.reply_timeout = reply_timeout;
    options.tick = 20ms;
    state = std::make_shared<fleet::RedisState>(options);
    gate = std::make_unique<Gate>(state);
  }
  std::shared_ptr<fleet::RedisState> state;
  std::unique_ptr<Gate> gate;
};

struct Ending {
  bool failed = false;
  Duration takes{};
};

struct Sends {
  std::shared_ptr<GuardPolicy> policy = std::make_shared<GuardPolicy>();
  std::function<bool()> more;  // whether to send another
  std::function<void()> on_send = [] {};
  std::function<void()> on_end = [] {};
  std::function<void(const Wait&)> on_refused = [](const Wait&) {};
  Ending ending;
};

Task<> send_until(Gate& gate, Scheduler& scheduler, const Sends& sends) {
  while (sends.more()) {
    Sender sender;
    sender.policy = sends.policy;
    sender.host = "https://api.example.com";
    sender.name = "/policies/a";
    Gate::Turn turn(gate, sender, scheduler.now());
    while (turn.status() == Gate::Turn::Status::Waiting) {
      co_await turn.wait(scheduler, std::stop_token());
    }
    if (turn.status() == Gate::Turn::Status::Refused) {
      sends.on_refused(turn.why());
      co_await scheduler.sleep_until(scheduler.now() + 1ms, std::stop_token());
      continue;
    }
    sends.on_send();
    if (sends.ending.takes > Duration::zero()) {
      co_await scheduler.sleep_until(scheduler.now() + sends.ending.takes, std::stop_token());
    }
    sends.on_end();
    Ended ended;
    ended.failed = sends.ending.failed;
    ended.responded = !ended.failed;
    turn.end(ended, scheduler.now(), 0.5);
  }
}

Task<Result<int>> run_all(Scheduler& scheduler, std::vector<Gate*> gates, int each,
                          const Sends& sends) {
  std::vector<Task<>> tasks;
  for (auto* gate : gates) {
    for (int count = 0; count < each; ++count) tasks.push_back(send_until(*gate, scheduler, sends));
  }
  co_await when_all(std::move(tasks));
  co_return 0;
}

// Sends with `each` at once from each gate, until `sends.more` says no.
void run(const std::vector<Gate*>& gates, int each, const Sends& sends) {
  Client client;
  std::promise<void> over;
  auto done = over.get_future();
  const auto work = client.spawn([&](Scheduler& scheduler) -> Task<Result<int>> {
    auto all = run_all(scheduler, gates, each, sends);
    Result<int> result = co_await all;
    over.set_value();
    co_return result;
  });
  done.get();
}

std::vector<Gate*> gates_of(const std::vector<std::unique_ptr<Process>>& processes) {
  std::vector<Gate*> gates;
  for (const auto& one : processes) gates.push_back(one->gate.get());
  return gates;
}

std::vector<std::unique_ptr<Process>> make_processes(const RedisServer& server, int count) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int index = 0; index < count; ++index) {
    processes.push_back(std::make_unique<Process>(server));
    REQUIRE(processes.back()->state->wait_for_first().empty());
  }
  return processes;
}

// The log lines of the library, for as long as it lives.
class Lines {
 public:
  Lines() {
    log_to([this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
      changed_.notify_all();
    });
  }
  ~Lines() { log_to({}); }
  void wait_for(std::string_view part, int count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_of(part) >= count; });
  }
  int count(std::string_view part) {
    const std::lock_guard lock(mutex_);
    return count_of(part);
  }

 private:
  int count_of(std::string_view part) const {
    return static_cast<int>(std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
      return line.find(part) != std::string::npos;
    }));
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

}  // namespace

TEST_CASE("eight processes together send no more than their rate") {
  RedisServer server;
  const auto processes = make_processes(server, 8);
  Sends sends;
  sends.policy->rate.emplace();
  sends.policy->rate->requests = 100;
  sends.policy->rate->burst = 10;
  std::atomic<int> sent = 0;
  const auto began = now_is();
  sends.more = [&] { return sent < 110; };
  sends.on_send = [&] { ++sent; };
  run(gates_of(processes), 2, sends);
  const auto elapsed = std::chrono::duration<double>(now_is() - began).count();
  CAPTURE(elapsed);
  // The burst, and what came since; a machine that stands still makes it less.
  CHECK(sent.load() <= 10 + 100 * elapsed + 10 + 1);
  CHECK(elapsed > 0.7);
}

TEST_CASE("two processes together have no more sends under way than the limit") {
  RedisServer server;
  const auto processes = make_processes(server, 2);
  Sends sends;
  sends.policy->concurrency.emplace();
  sends.policy->concurrency->max = 4;
  sends.ending.takes = 2ms;
  std::atomic<int> sent = 0;
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  sends.more = [&] { return sent < 300; };
  sends.on_send = [&] {
    ++sent;
    most = std::max(most.load(), ++under_way);
  };
  sends.on_end = [&] { --under_way; };
  run(gates_of(processes), 8, sends);
  CHECK(most.load() <= 4);
  CHECK(most.load() >= 3);
}

TEST_CASE("a circuit that one process opens refuses in another, and a probe of any closes it") {
  RedisServer server;
  const auto processes = make_processes(server, 2);
  Sends sends;
  sends.policy->breaker.emplace();
  auto& breaker = *sends.policy->breaker;
  breaker.min_requests = 10;
  breaker.open_for = Backoff::constant(300ms);
  // The first fails until it is refused.
  bool refused = false;
  sends.more = [&] { return !refused; };
  sends.on_refused = [&](const Wait& why) {
    CHECK(why.by == Held::Circuit);
    refused = true;
  };
  sends.ending.failed = true;
  std::atomic<int> sent = 0;
  sends.on_send = [&] { ++sent; };
  run({processes[0]->gate.get()}, 1, sends);
  CHECK(sent.load() >= 10);
  // The second has seen no failure, and is refused; what it sends until it hears of it succeeds.
  refused = false;
  sends.ending.failed = false;
  run({processes[1]->gate.get()}, 1, sends);
  CHECK(refused);
  // It probes, and the first sends again.
  for (const auto index : {1U, 0U}) {
    int good = 0;
    sends.more = [&] { return good < 3; };
    sends.on_refused = [](const Wait&) {};
    sends.on_send = [] {};
    sends.on_end = [&] { ++good; };
    run({processes[index]->gate.get()}, 1, sends);
    CHECK(good == 3);
  }
}

TEST_CASE("a server that asks one process to wait makes all wait") {
  RedisServer server;
  const auto processes = make_processes(server, 2);
  Sends sends;
  Sender sender;
  sender.policy = sends.policy;
  sender.host = "https://api.example.com";
  sender.name = "/policies/a";
  processes[0]->gate->pause(sender, GuardScope::Host, now_is() + 300s, now_is());
  Client client;
  // It sends until it hears of the pause.
  bool paused = false;
  while (!paused) {
    Sender other = sender;
    other.limit = now_is() + 10s;
    Gate::Turn turn(*processes[1]->gate, other, now_is());
    paused = turn.status() == Gate::Turn::Status::Refused;
    if (paused) CHECK(turn.why().by == Held::Pause);
    if (!paused) turn.end(Ended(), now_is(), 0.5);
  }
  CHECK(!processes[1]->gate->quiet());
}

TEST_CASE("while the server stands still each process has its share, and later the whole again") {
  Lines lines;
  RedisServer server;
  Process process(server, 50ms, 4);
  REQUIRE(process.state->wait_for_first().empty());
  Sends sends;
  sends.policy->rate.emplace();
  sends.policy->rate->requests = 1000;
  sends.policy->rate->burst = 8;
  std::atomic<int> sent = 0;
  const auto send = [&](int count) {
    const auto last = sent + count;
    sends.more = [&, last] { return sent < last; };
    sends.on_send = [&] { ++sent; };
    const auto began = now_is();
    run({process.gate.get()}, 1, sends);
    return std::chrono::duration<double>(now_is() - began).count();
  };
  send(20);
  CHECK(process.state->workers() == 4);
  server.suspend();
  send(100);
  CHECK(!process.state->up());
  // A quarter of the rate, with a burst of two.
  CHECK(send(50) > 0.9 * 48 / 250);
  lines.wait_for("limits are not shared any more");
  server.resume();
  lines.wait_for("limits are shared again");
  send(20);
  CHECK(lines.count("limits are not shared any more") == 1);
  CHECK(lines.count("this process goes on with 1/4 of each limit") == 1);
}

TEST_CASE("limits begin anew after FLUSHALL, and go on after SCRIPT FLUSH and a restart") {
  RedisServer server;
  Lines lines;
  const auto processes = make_processes(server, 2);
  fleet::Link::Options options;
  options.address = server.address();
  options.reply_timeout = 10s;
  fleet::Link link(std::move(options));
  Sends sends;
  sends.policy->rate.emplace();
  sends.policy->rate->requests = 1000;
  sends.policy->concurrency.emplace();
  sends.policy->breaker.emplace();
  std::atomic<int> sent = 0;
  const auto send = [&](int count) {
    const auto last = sent + count;
    sends.more = [&, last] { return sent < last; };
    sends.on_send = [&] { ++sent; };
    run(gates_of(processes), 2, sends);
  };
  send(50);
  for (const auto* command : {"FLUSHALL", "SCRIPT FLUSH"}) {
    CAPTURE(command);
    const std::string words = command;
    const auto space = words.find(' ');
    const bool one = space == std::string::npos;
    CHECK(ask(link, one ? std::vector<std::string>{words}
                        : std::vector<std::string>{words.substr(0, space), words.substr(space + 1)})
              .text == "OK");
    send(50);
  }
  CHECK(lines.count("limits are not shared") == 0);
  server.stop();
  lines.wait_for("limits are not shared any more", 2);
  send(20);
  server.start();
  lines.wait_for("limits are shared again", 2);
  send(50);
  CHECK(processes[0]->state->up());
}

TEST_CASE("a URL that is none is refused with the reason") {
  CHECK_THROWS_WITH(redis("rediss://h"),
                    doctest::Contains("rediss:// is not supported: hiredis 0.14"));
  CHECK_THROWS_WITH(redis("redis://h/0?job=a"), doctest::Contains("limits have none"));
  CHECK_THROWS_AS(redis("h"), std::invalid_argument);
}
