// What a call holds while it waits to be sent again: bytes, for many of them on one thread.
//
//   waiting bulk COUNT    virtual time and no network: what the calls themselves hold
//   waiting real COUNT    a loop, libcurl, and a server that says 503
#include "measure.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT

namespace {

// The test kit's ScriptedTransport keeps each request that it is shown, which would count here.
class Busy final : public Transport {
 public:
  Task<Outcome> send(Request /*request*/, Call& /*call*/) override {
    Response response(503);
    response.exchange.sent = Sent::Answered;
    response.exchange.wire_sends = 1;
    co_return response;
  }
};

// Counts the calls that have begun to wait, and keeps `kWindow` others on their way there.
class Pace final : public Observer {
 public:
  static constexpr long kWindow = 64;
  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    demand(attempt.retried, "a call did not begin to wait");
    waiting_.fetch_add(1);
    waiting_.notify_one();
  }
  void reach(long count) const {
    for (auto now = waiting_.load(); now < count; now = waiting_.load()) waiting_.wait(now);
  }

 private:
  std::atomic<long> waiting_ = 0;
};

Request five_headers(const std::string& url) {
  return Request::get(url)
      .add_header("Accept", "application/json")
      .add_header("User-Agent", "shop-frontend/4.2 (linux; x86_64)")
      .add_header("Authorization", "Bearer 0123456789abcdef0123456789abcdef0123456789abcdef")
      .add_header("X-Request-Id", "7f3c9a52-1d0e-4b8a-9c61-0f2f6d5f1e77")
      .add_header("Accept-Language", "en-GB, en;q=0.8");
}

MiddlewarePtr patient_retry() {
  RetryPolicy policy;
  policy.max_elapsed_time = kForever;
  policy.backoff = Backoff{};
  policy.backoff.kind = Backoff::Kind::Constant;
  policy.backoff.jitter = Backoff::Jitter::None;
  policy.backoff.initial = std::chrono::hours(1);
  policy.budget.kind = BudgetPolicy::Kind::None;
  return retry(std::move(policy));
}

}  // namespace

int main(int argc, char** argv) {
  demand(argc == 3, "usage: waiting bulk|real COUNT");
  const bool bulk = std::strcmp(argv[1], "bulk") == 0;
  const long count = std::atol(argv[2]);
  raise_file_limit();
  const Server server;
  const auto pace = std::make_shared<Pace>();
  const auto clock = std::make_shared<ManualScheduler>();

  ClientOptions options;
  options.middlewares = {redirect(), patient_retry(), hedge(), guards()};  // the default chain
  options.observers = {pace};
  if (bulk) {
    options.scheduler = clock;
    options.transport = std::make_shared<Busy>();
  }
  long ended = 0;  // read when the client is gone
  std::size_t heap = 0;
  std::size_t resident = 0;
  std::size_t process = 0;
  double cpu_us = 0;
  {
    Client client(options);
    const auto url = server.url("/busy");
    const auto add = [&](long from, long to) {
      for (long i = from; i < to; ++i) {
        if (!bulk) pace->reach(i - Pace::kWindow);
        client.send_then(five_headers(url), [&](Outcome) { ++ended; });
        if (bulk && i % 1000 == 0) clock->run();
      }
      if (bulk) clock->run();
      pace->reach(to);
    };
    const long first = std::clamp(count / 10, 1L, 1000L);  // connections, tables
    add(0, first);
    heap = heap_bytes();
    resident = resident_bytes();
    cpu_us = spent_in([&] { add(first, first + count); }).cpu_us;
    heap = heap_bytes() - heap;
    process = resident_bytes();
    resident = process - resident;
    if (bulk) {
      demand(clock->sleeping() == static_cast<std::size_t>(first + count), "not all calls wait");
      clock->advance(std::chrono::minutes(1));
      demand(ended == 0, "a wait ended early");
    }
  }
  std::printf(R"({"case": "%s", "count": %ld, "cpu_us": %.2f, "heap_bytes": %.0f, )"
              R"("resident_bytes": %.0f, "process_bytes": %zu})"
              "\n",
              argv[1], count, cpu_us / static_cast<double>(count),
              static_cast<double>(heap) / static_cast<double>(count),
              static_cast<double>(resident) / static_cast<double>(count), process);
}
