// Everything at once, for as long as one likes: calls by every send function against servers that
// fail, stop and start again, with names that are slow or wrong; calls are stopped, tasks dropped
// and clients destroyed at random moments. Each call must end once, and nothing be left behind.
// Meant for the sanitizers.
//
//   soak [--seconds N] [--seed N]
//
// What happens follows from the seed but for the races, which are the point of it.
#include "lib/core/curl/poller.hpp"

#include <httpretry/body/awaited_body.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/client/event_loop.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>
#include <tests/open_files.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// Waits before each piece.
Body slow_body(std::size_t size) {
  const auto start = [size]() -> NextPiece {
    return [left = size](Call& call) mutable -> Task<Result<std::string>> {
      const auto soon = call.scheduler().now() + 1ms;
      co_await call.scheduler().sleep_until(soon, call.stop());
      const auto count = std::min<std::size_t>(left, 20'000);
      left -= count;
      co_return std::string(count, 'u');
    };
  };
  return awaited_body(start, size);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  Duration up_to(Duration most) {
    return Duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.count()))));
  }
  std::uint64_t next() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "soak: %s\n", text.c_str());
  std::abort();  // for the core, and the sanitizers' stacks
}

// How calls ended, over all clients.
struct Figures {
  std::atomic<long> calls = 0;
  std::atomic<long> answers = 0;
  std::array<std::atomic<long>, 16> errors{};
  std::atomic<long> dropped = 0;
  std::atomic<long> clients = 0;
  std::atomic<long> restarts = 0;
};

Scenario mischief(Random& random) {
  std::vector<Step> steps;
  for (int i = 0; i < 200; ++i) {
    switch (random.below(14)) {
      case 0: steps.emplace_back(503); break;
      case 1: steps.emplace_back(429); break;
      case 2: steps.emplace_back(Fault::Reset); break;
      case 3: steps.emplace_back(Fault::Close); break;
      case 4: steps.emplace_back(Fault::Truncate); break;
      case 5: steps.emplace_back(Fault::Hang); break;
      case 6: steps.emplace_back(Fault::Stale); break;
      case 7: steps.emplace_back(Fault::Garbage); break;
      case 8: steps.emplace_back(302, Headers{{"Location", "/elsewhere"}}); break;
      case 9: steps.emplace_back(Fault::Drip); break;
      default: steps.emplace_back(200, std::string(random.below(30'000), 'b')); break;
    }
    auto& step = steps.back();
    if (random.one_in(3)) step.delay = random.up_to(5ms);
    step.interval = 1ms;
    if (random.one_in(10)) step.body = "{}";
    step.gzip = random.one_in(4) && !step.body.empty();
  }
  Scenario scenario(std::move(steps));
  scenario.then = Then::Restart;
  return scenario;
}

FaultServerOptions with(Tls tls) {
  FaultServerOptions options;
  options.tls = tls;
  options.max_seen = 100;
  return options;
}

// The servers, and a thread that stops and restarts them.
class Servers {
 public:
  Servers(Random& random, Figures& figures)
      : plain_(mischief(random), with(Tls::Off)),
        secure_(mischief(random), with(Tls::Good)),
        figures_(figures),
        thread_(
            [this, seed = random.next()](const std::stop_token& stop) { disturb(seed, stop); }) {}

  std::string url(Random& random) const {
    const auto path = "/" + std::to_string(random.below(3));
    switch (random.below(8)) {
      case 0: return secure_.url(path);
      case 1: return "http://127.0.0.1:1" + path;  // nobody is there
      case 2:
      case 3: {
        const auto host = "host" + std::to_string(random.below(6)) + ".test:";
        return "http://" + host + std::to_string(plain_.port()) + path;
      }
      default: return plain_.url(path);
    }
  }
  [[nodiscard]] const std::string& ca_file() const { return secure_.ca_file(); }

 private:
  void disturb(std::uint64_t seed, const std::stop_token& stop) {
    Random random(seed);
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(random.up_to(300ms));
      auto& server = random.one_in(3) ? secure_ : plain_;
      server.stop();
      if (random.one_in(2)) std::this_thread::sleep_for(random.up_to(30ms));
      server.restart();
      ++figures_.restarts;
    }
  }

  FaultServer plain_;
  FaultServer secure_;
  Figures& figures_;
  std::jthread thread_;
};

// Slow, failing, wrong and right.
Lookup unreliable(std::uint64_t seed) {
  struct State {
    explicit State(std::uint64_t start) : random(start) {}
    std::mutex mutex;
    Random random;
  };
  return [state = std::make_shared<State>(seed)](const std::string& host) -> Result<Addresses> {
    std::uint64_t dice = 0;
    {
      const std::lock_guard lock(state->mutex);
      dice = state->random.next();
    }
    if (dice % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice / 7 % 30'000));
    if (dice % 11 == 0) return Error(Errc::Resolve, "no address for " + host);
    if (dice % 13 == 0) return Addresses{"127.0.0.2"};
    return Addresses{"127.0.0.1"};
  };
}

// One call: it must end exactly once.
struct Ticket {
  std::stop_source stop;
  std::atomic<int> ends = 0;
};

// A client from its making to its end, and the threads that use it.
class Life {
 public:
  Life(std::uint64_t seed, const Servers& servers, Figures& figures)
      : random_(seed), servers_(servers), figures_(figures) {
    ClientOptions options;
    RetryPolicy policy;
    policy.max_attempts = 4;
    policy.backoff.initial = 2ms;
    policy.throttle_backoff.reset();
    policy.attempt_timeout = 100ms;
    options.middlewares = {redirect(), retry(policy), timeout(200ms),
                           on_request("last", [this](Request& request, Call&) {
                             if (request.headers().contains("X-Last")) last_began_ = true;
                           })};
    options.threads = 1 + static_cast<int>(random_.below(3));
    if (Poller::kHasDescriptor && random_.one_in(3))
      options.scheduler = event_loop_ = std::make_shared<EventLoop>();
    one_loop_ = options.threads == 1 || event_loop_;
    options.blocking = random_.one_in(4) ? Blocking::SharedLoop : Blocking::OwnThread;
    if (random_.one_in(2)) options.max_in_flight = 1 + static_cast<int>(random_.below(30));
    if (random_.one_in(3))
      options.max_in_flight_per_origin = 1 + static_cast<int>(random_.below(9));
    options.connection.ca_file = servers.ca_file();
    options.connection.lookup = unreliable(random_.next());
    client_ = std::make_unique<Client>(options);
    ++figures_.clients;
  }

  void live() {
    const auto until = Clock::now() + random_.up_to(400ms);
    std::jthread driver;  // of the EventLoop, until all calls have ended
    if (event_loop_) driver = std::jthread([this](const std::stop_token& over) { drive(over); });
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([this, until, seed = random_.next()] { use(seed, until); });
      }
      threads.emplace_back([this, until, seed = random_.next()] { stop_some(seed, until); });
    }
    end();
    settle();
  }

 private:
  // As a program does, which also has other things to do every millisecond.
  void drive(const std::stop_token& over) {
    while (!over.stop_requested()) {
      const auto wait = std::min(event_loop_->time_left().value_or(1ms), 1ms);
      pollfd ready{event_loop_->descriptor(), POLLIN, 0};
      ::poll(&ready, 1, static_cast<int>(wait.count()));
      event_loop_->turn();
    }
  }

  Ticket& ticket() {
    ++figures_.calls;
    const std::lock_guard lock(mutex_);
    return tickets_.emplace_back();
  }
  void ended(Ticket& ticket, const Outcome& outcome) {
    if (outcome) {
      ++figures_.answers;
    } else {
      ++figures_.errors[static_cast<std::size_t>(outcome.error().code)];
    }
    const auto& history = history_of(outcome);
    if (history.attempts.size() > 60) fail("a call made more attempts than its limits allow");
    if (++ticket.ends != 1) fail("a call ended twice");
    ++ended_;
    ended_.notify_all();
  }

  Request request(Random& random) const {
    auto url = servers_.url(random);
    if (!random.one_in(4)) return Request::get(std::move(url));
    const auto size = random.below(200'000);
    const bool at_once = random.one_in(2);
    auto request =
        Request::put(std::move(url), at_once ? Body(std::string(size, 'u')) : slow_body(size));
    request.edit_options().compressed = true;
    return request;
  }

  void use(std::uint64_t seed, Clock::time_point until) {
    Random random(seed);
    while (Clock::now() < until) {
      CallOptions options;
      if (random.one_in(5)) options.timeout = random.up_to(30ms);
      if (one_loop_ && random.one_in(5)) {
        drop_task(random, options);
        continue;
      }
      auto& ticket = this->ticket();
      options.stop = ticket.stop.get_token();
      switch (random.below(5)) {
        case 0: ended(ticket, client_->send(request(random), options)); break;
        case 1: ended(ticket, client_->send_async(request(random), options).get()); break;
        case 2: ended(ticket, sync_wait(client_->co_send(request(random), options))); break;
        default:
          client_->send_then(
              request(random), [this, &ticket](const Outcome& outcome) { ended(ticket, outcome); },
              options);
      }
      if (random.one_in(3)) std::this_thread::sleep_for(random.up_to(1ms));
    }
  }

  // On the one loop that there is: a task may be destroyed only where it would resume.
  void drop_task(Random& random, const CallOptions& options) {
    ++figures_.dropped;
    const auto wait = random.up_to(5ms);
    auto task = std::make_shared<Task<Outcome>>(client_->co_send(request(random), options));
    (void)client_->spawn([task, wait](Scheduler& loop) -> Task<Result<int>> {
      const Task<Outcome> dropped = std::move(*task);
      (void)dropped.operator co_await().await_suspend(std::noop_coroutine());
      const bool slept = co_await loop.sleep_until(loop.now() + wait, std::stop_token());
      co_return slept ? 1 : 0;
    });
  }

  void stop_some(std::uint64_t seed, Clock::time_point until) {
    Random random(seed);
    while (Clock::now() < until) {
      std::this_thread::sleep_for(random.up_to(1ms));
      const std::lock_guard lock(mutex_);
      if (tickets_.empty()) continue;
      // Mostly one of the latest, which is under way.
      const auto back = random.one_in(4) ? random.below(tickets_.size())
                                         : random.below(std::min<std::size_t>(tickets_.size(), 20));
      tickets_[tickets_.size() - 1 - back].stop.request_stop();
    }
  }

  // With more calls under way: here, on a thread of the client's own, or while others block in it.
  void end() {
    for (int i = 0; i < 30; ++i) {
      auto& ticket = this->ticket();
      client_->send_then(request(random_),
                         [this, &ticket](const Outcome& outcome) { ended(ticket, outcome); });
    }
    switch (random_.below(3)) {
      case 0: client_.reset(); return;
      case 1: {
        auto& ticket = this->ticket();
        client_->send_then(Request::get("nonsense"), [this, &ticket](const Outcome& outcome) {
          client_.reset();
          ended(ticket, outcome);
        });
        return;
      }
      default: {
        auto& ticket = this->ticket();
        auto last = request(random_);
        last.set_header("X-Last", "1");
        std::jthread blocked(
            [this, &ticket, alive = client_.get(), last] { ended(ticket, alive->send(last)); });
        while (!last_began_ && ticket.ends == 0) std::this_thread::yield();
        client_.reset();
      }
    }
  }

  void settle() {
    const auto all = static_cast<long>(tickets_.size());
    for (auto count = ended_.load(); count < all; count = ended_.load()) ended_.wait(count);
    for (const auto& ticket : tickets_) {
      if (ticket.ends != 1) fail("a call did not end once");
    }
  }

  Random random_;
  const Servers& servers_;
  Figures& figures_;
  std::mutex mutex_;
  std::deque<Ticket> tickets_;
  bool one_loop_ = false;
  std::atomic<bool> last_began_ = false;
  std::atomic<long> ended_ = 0;
  std::shared_ptr<EventLoop> event_loop_;  // a third of the clients have one
  std::unique_ptr<Client> client_;
};

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const auto value = std::strtoull(text, &end, 10);
  if (*text == '\0' || *end != '\0') fail(std::string("\"") + text + "\" is no number");
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seconds = 10;
  std::uint64_t seed = std::random_device{}();
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) {
      seconds = number(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      seed = number(argv[i + 1]);
    } else {
      fail(std::string("usage: soak [--seconds N] [--seed N]; found ") + argv[i]);
    }
  }
  if (argc % 2 == 0)
    fail(std::string("usage: soak [--seconds N] [--seed N]; found ") + argv[argc - 1]);
  std::signal(SIGPIPE, SIG_IGN);
  std::printf("soak: %llu s, seed %llu\n", static_cast<unsigned long long>(seconds),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);

  Random random(seed);
  Figures figures;
  const auto files = open_files();
  {
    const Servers servers(random, figures);
    const auto until = Clock::now() + std::chrono::seconds(seconds);
    while (Clock::now() < until) {
      std::array<std::jthread, 2> lives;  // two clients at a time
      for (auto& life : lives) {
        life = std::jthread([&, start = random.next()] { Life(start, servers, figures).live(); });
      }
    }
  }
  // A thread that ended its client frees its loop last of all.
  const auto patience = Clock::now() + 20s;
  while (open_files() > files && Clock::now() < patience) std::this_thread::yield();
  if (open_files() > files) {
    fail(std::to_string(open_files() - files) + " descriptors were left open");
  }

  std::printf("%ld clients, %ld calls: %ld answered", figures.clients.load(), figures.calls.load(),
              figures.answers.load());
  for (std::size_t i = 0; i < figures.errors.size(); ++i) {
    if (figures.errors[i] == 0) continue;
    const auto word = to_string(static_cast<Errc>(i));
    std::printf(", %ld %.*s", figures.errors[i].load(), static_cast<int>(word.size()), word.data());
  }
  std::printf("; %ld tasks dropped, %ld restarts of a server\n", figures.dropped.load(),
              figures.restarts.load());
  if (figures.answers == 0) fail("no call was answered");
}
