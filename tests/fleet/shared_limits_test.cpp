// Limits that several processes share on a real server, each with a connection of its own.
#include "redis_server.hpp"

#include "lib/fleet/redis_state.hpp"
#include "lib/fleet/shared_scope.hpp"

#include <httpretry/flow/log.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace httpretry::fleet;
using namespace std::chrono_literals;

namespace {

Time now_is() { return std::chrono::steady_clock::now(); }

// A process that sends under one rate, one limit of concurrent sends and one breaker.
class Process : public RemoteState::Listener {
  template <class Machine>
  auto told(Machine Process::*machine) {
    return [this, machine](const auto& reply, Time) {
      const std::lock_guard lock(mutex_);
      if (reply.away) (this->*machine).lost();
      if (!reply.away) (this->*machine).got(reply);
      changed_.notify_all();
    };
  }

 public:
  explicit Process(const RedisServer& server, Duration reply_timeout = 5s, int workers = 1) {
    RedisState::Options options;
    options.address = server.address();
    options.address.workers = workers;
    options.reply_timeout = reply_timeout;
    options.tick = 20ms;
    state_ = std::make_unique<RedisState>(options);
    state_->listen(listener_);
  }

  RatePolicy rate;
  BreakerPolicy breaker;
  RedisState& state() { return *state_; }

  // Waits for a token; false where the remote state is away.
  bool take_token() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto now = now_is();
      const auto wanted = tokens_.wanted(rate, 1, now);
      if (wanted > 0) {
        tokens_.asked();
        if (!state_->take_tokens("api", rate, wanted, 0, told(&Process::tokens_))) {
          tokens_.lost();
          return false;
        }
      }
      const auto ready = tokens_.ready_at(now);
      if (tokens_.count() > 0 && ready <= now) {
        tokens_.take(now);
        return true;
      }
      changed_.wait_until(lock, ready);
    }
  }
  std::int64_t give_back() {
    const std::lock_guard lock(mutex_);
    return tokens_.give_back(now_is() + 1s);
  }

  // Waits until it may have `used` sends under way.
  void hold(int max, int used) {
    std::unique_lock lock(mutex_);
    while (slots_.granted() < used) {
      if (slots_.asks(used, now_is())) {
        slots_.asked(now_is());
        CHECK(state_->hold_slots("api", max, used - 1, used, told(&Process::slots_)));
      }
      changed_.wait_until(lock, std::max(slots_.next_ask(), now_is() + 1ms));
    }
  }
  void release(int max) {
    std::unique_lock lock(mutex_);
    slots_.clear();
    state_->hold_slots("api", max, 0, 0, [](const RemoteState::Slots&, Time) {});
  }

  // A send with that end; false: it is refused.
  bool send(bool fails) {
    std::unique_lock lock(mutex_);
    auto answer = circuit_.ask(now_is());
    if (answer.asks) {
      tell(true);
      changed_.wait(lock, [&] { return !circuit_.is_asked(); });
      answer = circuit_.ask(now_is());
    }
    if (!answer.allowed) return false;
    const auto ticket = circuit_.take();
    Vote vote;
    vote.failed = fails;
    if (circuit_.vote(breaker, ticket, vote)) {
      tell(false);
      changed_.wait(lock, [&] { return !circuit_.is_asked(); });
    }
    return true;
  }
  // Waits for news of which that is true.
  void wait_for(const std::function<bool(const RemoteState::News&)>& good) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return good(news_); });
  }
  void follow_news() {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, view] : news_.circuits) circuit_.heard(view);
  }

 private:
  void on_news(const RemoteState::News& news, Time) override {
    const std::lock_guard lock(mutex_);
    news_ = news;
    changed_.notify_all();
  }
  void tell(bool wants_probe) {
    const auto votes = circuit_.tell(breaker, wants_probe, 0.5);
    CHECK(
        state_->vote("api", breaker, votes, [this](const RemoteState::CircuitView& view, Time now) {
          const std::lock_guard lock(mutex_);
          circuit_.got(view, now);
          changed_.notify_all();
        }));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  TokensAhead tokens_;
  SlotsHeld slots_;
  CircuitVotes circuit_;
  RemoteState::News news_;
  // Owns nothing: the thread that tells it ends before this does.
  std::shared_ptr<RemoteState::Listener> listener_{this, [](RemoteState::Listener*) {}};
  std::unique_ptr<RedisState> state_;  // the last: its thread uses all the others
};

std::vector<std::unique_ptr<Process>> make_processes(const RedisServer& server, int count) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int index = 0; index < count; ++index) {
    processes.push_back(std::make_unique<Process>(server));
    REQUIRE(processes.back()->state().wait_for_first().empty());
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

TEST_CASE("eight processes together take no more tokens than their rate gives") {
  RedisServer server;
  const auto processes = make_processes(server, 8);
  std::atomic<int> sent = 0;
  std::vector<std::thread> threads;
  const auto began = now_is();
  for (const auto& process : processes) {
    process->rate.requests = 100;
    process->rate.burst = 10;
    threads.emplace_back([&sent, one = process.get()] {
      while (sent < 110 && one->take_token()) ++sent;
    });
  }
  for (auto& thread : threads) thread.join();
  const auto elapsed = std::chrono::duration<double>(now_is() - began).count();
  CAPTURE(elapsed);
  // The burst, and what came since. A machine that stands still makes it less.
  CHECK(sent.load() >= 110);
  CHECK(sent.load() <= 10 + 100 * elapsed + 1);
}

TEST_CASE("tokens that nobody needs are given back") {
  RedisServer server;
  const auto processes = make_processes(server, 1);
  auto* const process = processes.front().get();
  process->rate.requests = 100;
  process->rate.burst = 100;
  for (int count = 0; count < 60; ++count) REQUIRE(process->take_token());
  CHECK(process->give_back() <= 10);  // no more than a tenth of a second
  CHECK(process->give_back() == 0);
}

TEST_CASE("processes together have no more sends under way than the limit") {
  RedisServer server;
  const auto processes = make_processes(server, 3);
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (const auto& process : processes) {
    threads.emplace_back([&, one = process.get()] {
      for (int round = 0; round < 20; ++round) {
        one->hold(2, 1);
        most = std::max(most.load(), ++under_way);
        --under_way;
        one->release(2);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(most.load() >= 1);
  CHECK(most.load() <= 2);
}

TEST_CASE("a circuit that one process opens refuses in another, and a probe of any closes it") {
  RedisServer server;
  const auto processes = make_processes(server, 2);
  for (const auto& process : processes) {
    process->breaker.min_requests = 10;
    process->breaker.open_for = Backoff::constant(300ms);
  }
  int sent = 0;
  while (processes[0]->send(true)) ++sent;
  CHECK(sent == 10);
  // The other has seen no failure.
  processes[1]->wait_for([](const auto& news) { return news.circuits.size() == 1; });
  processes[1]->follow_news();
  bool probed = processes[1]->send(false);
  CHECK(!probed);
  while (!probed) probed = processes[1]->send(false);
  CHECK(processes[1]->send(false));
  processes[0]->wait_for([](const auto& news) { return news.circuits.empty(); });
  int good = 0;
  while (good < 3) good += processes[0]->send(false) ? 1 : 0;
}

TEST_CASE("a server that asks one process to wait makes all wait") {
  RedisServer server;
  const auto processes = make_processes(server, 2);
  const auto began = now_is();
  CHECK(processes[0]->state().pause("pause https://api.example.com", 300s));
  processes[1]->wait_for([&](const RemoteState::News& news) {
    return news.pauses.size() == 1 && news.pauses[0].key == "pause https://api.example.com" &&
           news.pauses[0].until > began + 200s;
  });
}

TEST_CASE("a server that stands still is away, is told once, and comes back") {
  Lines lines;
  RedisServer server;
  const auto process = std::make_unique<Process>(server, 50ms, 4);
  REQUIRE(process->state().wait_for_first().empty());
  CHECK(process->take_token());
  CHECK(process->state().workers() == 4);
  server.suspend();
  while (process->take_token()) {
  }
  CHECK(!process->state().up());
  CHECK(!process->state().pause("p", 1s));
  lines.wait_for("limits are not shared any more");
  process->wait_for([](const auto& news) { return news.away; });
  server.resume();
  lines.wait_for("limits are shared again");
  process->wait_for([](const auto& news) { return !news.away; });
  CHECK(lines.count("this process goes on with 1/4 of each limit") == 1);
}

TEST_CASE("limits begin anew after FLUSHALL, and go on after SCRIPT FLUSH and a restart") {
  RedisServer server;
  Lines lines;
  const auto processes = make_processes(server, 1);
  auto* const process = processes.front().get();
  Link::Options options;
  options.address = server.address();
  options.reply_timeout = 10s;
  Link link(std::move(options));
  process->rate.requests = 1;
  process->rate.per = 1h;
  process->rate.burst = 2;
  CHECK(process->take_token());
  CHECK(process->take_token());
  CHECK(ask(link, {"FLUSHALL"}).text == "OK");
  process->give_back();
  auto second = std::make_unique<Process>(server);
  second->rate = process->rate;
  REQUIRE(second->state().wait_for_first().empty());
  CHECK(second->take_token());
  CHECK(ask(link, {"SCRIPT", "FLUSH"}).text == "OK");
  CHECK(second->take_token());
  CHECK(lines.count("limits are not shared") == 0);
  second.reset();
  server.stop();
  lines.wait_for("limits are not shared any more");
  CHECK(!process->state().up());
  server.start();
  lines.wait_for("limits are shared again");
  CHECK(process->state().up());
}

TEST_CASE("the share of one process") {
  RatePolicy rate;
  rate.requests = 100;
  rate.burst = 10;
  CHECK(share_of(rate, 4).per == 4s);
  CHECK(share_of(rate, 4).burst == 2);
  CHECK(share_of(rate, 40).burst == 1);
  ConcurrencyPolicy slots;
  slots.max = 10;
  slots.min = 5;
  CHECK(share_of(slots, 4).max == 2);
  CHECK(share_of(slots, 4).min == 2);
  CHECK(share_of(slots, 40).max == 1);
  BreakerPolicy breaker;
  CHECK(share_of(breaker, 4).min_requests == 5);
}
