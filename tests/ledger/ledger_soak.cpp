// A great many calls through servers of which a fifth of the responses are faults, over HTTP/1.1
// and HTTP/2, and then the books are compared: what the servers saw against what the client says.
// No call may end twice or never, nothing unsafe be seen again that was executed, no key go with
// two bodies, and no descriptor and no memory be left behind. With --hedge-after, sends that are
// slower than that are raced by others, and each of them is in the books, too.
//
//   ledger_soak [--calls N] [--at-once N] [--seed N] [--hedge-after MS]
#include "http2_fault_server.hpp"
#include "ledger.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>
#include <tests/open_files.hpp>

#include <malloc.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

using namespace httpretry;
using namespace httpretry::ledger;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// Calls that are known to be blocked on their own thread; the others use callbacks.
constexpr std::size_t kBlockingThreads = 8;

// Bytes that were allocated and not given back; of sanitizers, which look for leaks themselves, 0.
std::size_t memory_in_use() {
  ::malloc_trim(0);
  return ::mallinfo2().uordblks;
}

// Evenly spread, and the same for the same number.
std::uint64_t scatter(std::uint64_t number) {
  number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
  return number ^ (number >> 31U);
}

// A fifth of the steps of the HTTP/1.1 server.
Step fault_of(std::uint64_t dice) {
  switch (dice % 14) {
    case 0: return {Fault::Reset};
    case 1: return {Fault::ResetDuring};
    case 2: return {Fault::ResetEarly};
    case 3: return {Fault::Close};
    case 4: return {Fault::Truncate};
    case 5: return {Fault::Hang};
    case 6: return {Fault::Stale};
    case 7: return {Fault::Garbage};
    case 8: return {Fault::BadChunk};
    case 9: return {503, Headers{{"Retry-After", "0"}}, "later"};
    case 10:
    case 11: return {429, Headers{{"Retry-After", "0"}}, "less"};
    case 12: return {500, "bad"};
    default: return {503, "busy"};
  }
}

std::vector<Step> steps(std::uint64_t seed) {
  std::vector<Step> all;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto dice = scatter(seed + i);
    if (dice % 5 == 0) {
      all.push_back(fault_of(dice / 5));
    } else {
      all.emplace_back(200, std::string(dice / 5 % 2000, 'b'));
    }
  }
  return all;
}

bool did_nothing(const Step& step) {
  return step.fault == Fault::None &&
         (step.status == 429 || (step.status == 503 && step.headers.contains("Retry-After")));
}

class Servers {
 public:
  Servers(std::uint64_t seed, Ledger& ledger)
      : ledger_(ledger),
        steps_(steps(seed)),
        http1_(scenario(), options()),
        http2_(seed, [&ledger](const Sight& sight) { ledger.server_saw(sight); }),
        disturber_([this, seed](const std::stop_token& stop) { disturb(seed, stop); }) {}

  [[nodiscard]] std::string url(std::size_t call) const {
    return call % 2 == 0 ? http1_.url("/one") : http2_.url("/two");
  }
  [[nodiscard]] const std::string& ca_file() const { return http2_.ca_file(); }
  [[nodiscard]] int restarts() const { return restarts_; }

 private:
  Scenario scenario() const {
    Scenario scenario(steps_);
    scenario.then = Then::Restart;
    return scenario;
  }
  FaultServerOptions options() {
    FaultServerOptions options;
    options.max_seen = 1;
    options.on_request = [this](const SeenRequest& seen) {
      const auto id = seen.headers.get("X-Call");
      if (!id) fail("a request without X-Call");
      // On a connection gone stale no step is taken, and nothing is done.
      const bool refused = !seen.step || did_nothing(steps_[*seen.step]);
      ledger_.server_saw({*id, seen.headers.get("Idempotency-Key").value_or(""), hash(seen.body),
                          seen.body_complete, refused && seen.step.has_value()});
    };
    return options;
  }
  void disturb(std::uint64_t seed, const std::stop_token& stop) {
    std::mt19937_64 random(seed);
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 600));
      if (random() % 2 == 0) {
        http2_.restart();
      } else {
        http1_.stop();
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 10));
        http1_.restart();
      }
      ++restarts_;
    }
  }

  Ledger& ledger_;
  const std::vector<Step> steps_;
  FaultServer http1_;
  Http2FaultServer http2_;
  std::atomic<int> restarts_ = 0;
  std::jthread disturber_;  // last: it uses the others
};

std::shared_ptr<const RetryPolicy> policy(const char* key, Duration hedge_after) {
  auto policy = std::make_shared<RetryPolicy>();
  policy->max_attempts = 6;
  policy->backoff.initial = 2ms;
  policy->backoff.max_interval = 50ms;
  policy->throttle_backoff.reset();
  policy->attempt_timeout = 1s;                    // much, for sanitizers on a busy machine
  policy->budget.kind = BudgetPolicy::Kind::None;  // a fifth of all is more than any would allow
  policy->idempotency_key = key;
  if (hedge_after == kForever) return policy;
  auto& hedge = policy->hedge.emplace();
  hedge.after = hedge_after;
  hedge.max_hedges = 2;
  hedge.methods.clear();  // all that may be repeated
  hedge.budget.reset();
  return policy;
}

ClientOptions client_options(const Servers& servers, Ledger& ledger) {
  ClientOptions options;
  options.middlewares = {
      retry(), hedge(), guards(), on_request("ledger", [&ledger](Request& request, Call& call) {
        const auto number = std::stoul(std::string(*request.headers().get("X-Call")));
        request.set_header("X-Call", ledger.attempt_begins(number, call.attempt()));
      })};
  options.threads = 2;
  options.connection.ca_file = servers.ca_file();
  return options;
}

// The calls, `at_once` of them at any time, and a watch over whether they end.
class Load {
 public:
  Load(Ledger& ledger, const Servers& servers, std::uint64_t seed, Duration hedge_after)
      : ledger_(ledger),
        servers_(servers),
        seed_(seed),
        plain_(policy("", hedge_after)),
        keyed_(policy("Idempotency-Key", hedge_after)),
        client_(client_options(servers, ledger)) {}

  void run(std::size_t at_once) {
    const auto blocking = std::min(at_once, kBlockingThreads);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < blocking; ++i) threads.emplace_back([this] { send_blocking(); });
      for (std::size_t i = blocking; i < at_once; ++i) send_next();
      watch();
    }
  }

 private:
  struct Plan {
    Request request;
    CallOptions options;
  };
  Plan plan(std::size_t call) {
    static constexpr std::array kMethods{"GET",    "GET",  "HEAD", "PUT",
                                         "DELETE", "POST", "POST", "PATCH"};
    const auto dice = scatter(seed_ ^ (call << 20U));
    const std::string method = kMethods[dice % kMethods.size()];
    const bool sends_again = method != "POST" && method != "PATCH";
    const auto kind = sends_again ? Kind::Safe : dice / 16 % 2 == 0 ? Kind::Keyed : Kind::Unsafe;
    Plan plan{Request(method, servers_.url(call)), CallOptions()};
    std::string body;
    if (method.front() == 'P') {
      const auto size = dice / 64 % 50 == 0 ? dice % 100'000 : dice % 2000;
      body.assign(size, static_cast<char>('a' + call % 26));
      body += std::to_string(call);
    }
    ledger_.call_begins(call, kind, body);
    if (!body.empty()) plan.request.set_body(std::move(body));
    plan.request.set_header("X-Call", std::to_string(call));
    plan.options.policy = kind == Kind::Keyed ? keyed_ : plain_;
    return plan;
  }
  void send_blocking() {
    for (auto call = next_++; call < ledger_.size(); call = next_++) {
      auto planned = plan(call);
      ledger_.call_ends(call, client_.send(std::move(planned.request), std::move(planned.options)));
      ++ended_;
    }
  }
  void send_next() {
    const auto call = next_++;
    if (call >= ledger_.size()) return;
    auto planned = plan(call);
    client_.send_then(
        std::move(planned.request),
        [this, call](const Outcome& outcome) {
          ledger_.call_ends(call, outcome);
          ++ended_;
          send_next();
        },
        std::move(planned.options));
  }
  void watch() const {
    auto before = ended_.load();
    auto since = Clock::now();
    while (before < ledger_.size()) {
      std::this_thread::sleep_for(10ms);
      const auto now = ended_.load();
      if (now != before) since = Clock::now();
      before = now;
      if (Clock::now() - since > 120s) fail("calls do not end: " + std::to_string(now) + " have");
    }
  }

  Ledger& ledger_;
  const Servers& servers_;
  const std::uint64_t seed_;
  const std::shared_ptr<const RetryPolicy> plain_;
  const std::shared_ptr<const RetryPolicy> keyed_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> ended_ = 0;
  Client client_;  // last: it ends before what its calls use
};

Ledger::Totals balance_of_run(Ledger& ledger, std::size_t at_once, std::uint64_t seed,
                              Duration hedge_after, int& restarts) {
  {
    const Servers servers(seed, ledger);
    Load(ledger, servers, seed, hedge_after).run(at_once);
    restarts = servers.restarts();
  }
  return ledger.balance();
}

void print(const Ledger::Totals& totals, int restarts, double seconds) {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("%llu calls in %.1f s (%.0f a second), %d restarts of a server\n",
              number(totals.calls), seconds, static_cast<double>(totals.calls) / seconds, restarts);
  std::printf(
      "attempts: %llu sent = %llu seen + %llu lost on the way; %llu answered; %llu never sent; "
      "%llu hedges\n",
      number(totals.sends), number(totals.seen), number(totals.lost), number(totals.answered),
      number(totals.unsent), number(totals.hedges));
  static constexpr std::array kNames{"safe", "unsafe", "keyed"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    std::printf("%s: %llu calls, %llu with a 2xx\n", kNames[i], number(totals.kinds[i]),
                number(totals.good[i]));
  }
}

// That retries were made at all: without them a fifth would fail. On a busy machine some calls use
// up all their attempts, because attempts time out.
void check_success(const Ledger::Totals& totals) {
  for (const auto kind : {Kind::Safe, Kind::Keyed}) {
    const auto i = static_cast<std::size_t>(kind);
    if (totals.good[i] * 100 < totals.kinds[i] * 90)
      fail("too many of what may be repeated failed");
  }
}

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const auto value = std::strtoull(text, &end, 10);
  if (*text == '\0' || *end != '\0') fail(std::string("\"") + text + "\" is no number");
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t calls = 10'000;
  std::uint64_t at_once = 64;
  std::uint64_t seed = std::random_device{}();
  std::uint64_t hedge_ms = 0;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    auto* value = name == "--calls"         ? &calls
                  : name == "--at-once"     ? &at_once
                  : name == "--seed"        ? &seed
                  : name == "--hedge-after" ? &hedge_ms
                                            : nullptr;
    if (value == nullptr || i + 1 == argc) {
      fail("usage: ledger_soak [--calls N] [--at-once N] [--seed N] [--hedge-after MS]; found " +
           name);
    }
    *value = number(argv[i + 1]);
  }
  const Duration hedge_after = hedge_ms == 0 ? kForever : std::chrono::milliseconds(hedge_ms);
  std::signal(SIGPIPE, SIG_IGN);
  std::printf("ledger_soak: seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);

  int restarts = 0;
  {  // what stays for good (of libcurl, OpenSSL, the C library) is there after this
    Ledger ledger(500);
    static_cast<void>(balance_of_run(ledger, at_once, seed, hedge_after, restarts));
  }
  const auto files = open_files();
  const auto memory = memory_in_use();
  const auto begun = Clock::now();
  Ledger::Totals totals;
  {
    Ledger ledger(calls);
    totals = balance_of_run(ledger, at_once, seed, hedge_after, restarts);
  }
  const auto seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  print(totals, restarts, seconds);
  check_success(totals);
  if ((hedge_after != kForever) != (totals.hedges > 0)) {
    fail("there were " + std::to_string(totals.hedges) + " hedges");
  }
  const auto grown = static_cast<long long>(memory_in_use()) - static_cast<long long>(memory);
  std::printf("memory in use: %lld bytes more than after the first 500\n", grown);
  if (grown > 300'000) fail("memory was left behind");
  if (open_files() != files)
    fail(std::to_string(open_files()) + " descriptors are open, not " + std::to_string(files));
  std::printf("the books agree\n");
}
