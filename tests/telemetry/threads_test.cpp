// A hundred thousand calls on 64 threads: metrics, spans, histories and the transport must have
// seen the same.
#include "tests/rounds.hpp"

#include <httpretry/httpretry.hpp>
#include <httpretry/telemetry/telemetry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <map>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr int kThreads = 64;
constexpr int kCallsOfOne = rounds(1563);  // 100 032 of all

// By the number that each call has in its URL: which of its attempts fail.
class Ledger final : public Transport {
 public:
  Task<Outcome> send(Request request, Call& call) override {
    const auto number = request.url().back() - '0';
    Response response(number == 3 && call.attempt() == 1   ? 503
                      : number == 5 && call.attempt() <= 2 ? 500
                      : number == 7                        ? 404
                                                           : 200);
    response.http_version = "1.1";
    response.exchange.sent = Sent::Answered;
    response.exchange.wire_sends = 1;
    response.exchange.timings.total = std::chrono::milliseconds(number);
    statuses_.at(static_cast<std::size_t>(response.status)).fetch_add(1);
    co_return response;
  }
  [[nodiscard]] int count(int status) const {
    return statuses_.at(static_cast<std::size_t>(status)).load();
  }

 private:
  std::array<std::atomic<int>, 600> statuses_{};
};

struct Totals {
  std::map<int, int> statuses;  // of attempts
  int calls = 0;
  int retries = 0;
  void add(const Totals& other) {
    calls += other.calls;
    retries += other.retries;
    for (const auto& [status, count] : other.statuses) statuses[status] += count;
  }
};

Totals run(Client& client, int thread) {
  Totals totals;
  for (int i = 0; i < kCallsOfOne; ++i) {
    const auto host = "http://h" + std::to_string((thread + i) % 7);
    const auto outcome = client.get(host + "/" + std::to_string(i % 10));
    ++totals.calls;
    for (const auto& attempt : history_of(outcome).attempts) {
      ++totals.statuses[attempt.status];
      totals.retries += attempt.retried ? 1 : 0;
    }
  }
  return totals;
}

}  // namespace

TEST_CASE("numbers of 64 threads agree, in metrics, spans, histories and the ledger") {
  const auto ledger = std::make_shared<Ledger>();
  const auto numbers = metrics();
  std::atomic<int> sends = 0;
  std::atomic<int> calls = 0;
  std::atomic<int> lines = 0;
  RetryPolicy policy;
  policy.backoff.kind = Backoff::Kind::None;
  policy.throttle_backoff.reset();
  policy.max_attempts = 3;
  ClientOptions options;
  options.transport = ledger;
  options.middlewares = {retry(policy), propagate()};
  const auto count = [&](const SpanPtr& span) {
    (span->kind == Span::Kind::Client ? sends : calls).fetch_add(1, std::memory_order_relaxed);
  };
  options.observers = {traces(count), numbers,
                       json_log([&](std::string_view /*line*/) { lines.fetch_add(1); })};
  Client client(std::move(options));

  Totals totals;
  std::array<Totals, kThreads> of_threads;
  std::atomic<bool> reading = true;
  // Readers must not disturb those that count.
  std::thread reader([&] {
    double seen = 0;
    while (reading.load()) {
      const auto now = numbers->snapshot().sum("httpretry_sends_total");
      CHECK(now >= seen);
      seen = now;
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { of_threads.at(static_cast<std::size_t>(i)) = run(client, i); });
  }
  for (auto& thread : threads) thread.join();
  reading.store(false);
  reader.join();
  for (const auto& each : of_threads) totals.add(each);

  constexpr auto* kDuration = "http_client_request_duration_seconds";
  const auto taken = numbers->snapshot();
  int all = 0;
  for (const auto& [status, of_status] : totals.statuses) {
    CHECK(ledger->count(status) == of_status);
    CHECK(taken.sum(kDuration, {{"http_response_status_code", std::to_string(status)}}) ==
          of_status);
    all += of_status;
  }
  CHECK(totals.calls == kThreads * kCallsOfOne);
  CHECK(totals.statuses.size() == 4);
  CHECK(sends == all);
  CHECK(calls == totals.calls);
  CHECK(lines == all + totals.calls);
  CHECK(taken.sum("httpretry_sends_total") == all);
  CHECK(taken.sum(kDuration) == all);
  CHECK(taken.sum("httpretry_retries_total") == totals.retries);
  CHECK(taken.sum("httpretry_call_attempts") == totals.calls);
  CHECK(taken.sum("httpretry_in_flight") == 0);
  CHECK(taken.find(kDuration)->series.size() == 7 * 4);
}
