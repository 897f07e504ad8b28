// What hedges do to the slowest calls on the wire, and what they cost: one response of a hundred
// is slow by a second.
//
//   hedge plain|tls off|on CALLS IN_FLIGHT
//   hedge sample COUNT    what it costs to remember how long a response took
//
// The client sends a hedge after 100 ms. CPU is that of the client and of the server, which is in
// this process: compare within a row.
#include "measure.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT
using namespace std::chrono_literals;

namespace {

Scenario one_of_a_hundred_is_slow() {
  static std::mutex mutex;
  static std::mt19937_64 random(20130213);
  Step step;
  step.respond = [](const SeenRequest& /*request*/) {
    const std::lock_guard lock(mutex);
    Step reply(200, "{}");
    if (std::uniform_int_distribution(1, 100)(random) == 1) reply.delay = 1s;
    return reply;
  };
  Scenario scenario;
  scenario.steps = {step};
  return scenario;
}

ClientOptions options_for(bool hedged, const std::string& ca_file) {
  RetryPolicy policy;
  if (hedged) {
    policy.hedge.emplace();
    policy.hedge->after = 100ms;
  }
  ClientOptions options;
  options.connection.ca_file = ca_file;
  options.middlewares = {redirect(), retry(policy), hedge()};
  return options;
}

// The calls, so many at once: each that ends begins the next.
class Calls {
 public:
  Calls(Client& client, std::string url, long count) : client_(client), url_(std::move(url)) {
    left_ = count;
    running_ = count;
    times_.reserve(static_cast<std::size_t>(count));
  }

  void run(long in_flight) {
    for (long i = 0; i < in_flight; ++i) begin();
    for (auto now = running_.load(); now > 0; now = running_.load()) running_.wait(now);
  }
  [[nodiscard]] std::vector<Duration> sorted_times() {
    std::sort(times_.begin(), times_.end());
    return times_;
  }

 private:
  void begin() {
    if (left_.fetch_sub(1) <= 0) return;
    client_.send_then(Request::get(url_), [this](const Outcome& outcome) {
      demand(outcome && outcome->status == 200, "a request failed");
      {
        const std::lock_guard lock(mutex_);
        times_.push_back(outcome->history.elapsed);
      }
      begin();
      if (running_.fetch_sub(1) == 1) running_.notify_one();
    });
  }

  Client& client_;
  const std::string url_;
  std::atomic<long> left_ = 0;
  std::atomic<long> running_ = 0;
  std::mutex mutex_;
  std::vector<Duration> times_;
};

double ms_at(const std::vector<Duration>& times, double quantile) {
  const auto rank = static_cast<std::size_t>(quantile * static_cast<double>(times.size()));
  const std::chrono::duration<double, std::milli> time = times[std::min(rank, times.size() - 1)];
  return time.count();
}

int samples(long count) {
  const auto account = local_state()->hedges("hedge http://x", Time(1h));
  const auto spent = spent_in([&] {
    for (long i = 0; i < count; ++i) {
      account->add_sample(1ms + Duration(i * 7919 % 900'000'000), Time(1h));
    }
  });
  std::printf(R"({"samples": %ld, "sample_ns": %.1f})"
              "\n",
              count, spent.cpu_us * 1e3 / static_cast<double>(count));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "sample") {
    return samples(std::strtol(argv[2], nullptr, 10));
  }
  demand(argc == 5, "usage: hedge plain|tls off|on CALLS IN_FLIGHT");
  const std::string scheme = argv[1];
  const std::string hedges = argv[2];
  const auto calls = std::strtol(argv[3], nullptr, 10);
  const auto in_flight = std::strtol(argv[4], nullptr, 10);
  FaultServerOptions how;
  if (scheme == "tls") how.tls = Tls::Good;
  FaultServer server(one_of_a_hundred_is_slow(), how);
  Client client(options_for(hedges == "on", server.ca_file()));
  Calls all(client, server.url(), calls);
  const auto spent = spent_in([&] { all.run(in_flight); });
  const auto times = all.sorted_times();
  std::printf(R"({"scheme": "%s", "hedges": "%s", "calls": %ld, "sends": %zu, "connections": %zu, )"
              R"("p50_ms": %.2f, "p99_ms": %.2f, "p999_ms": %.2f, "max_ms": %.2f, "cpu_us": %.1f})"
              "\n",
              scheme.c_str(), hedges.c_str(), calls, server.requests(), server.connections(),
              ms_at(times, 0.5), ms_at(times, 0.99), ms_at(times, 0.999), ms_at(times, 1),
              spent.cpu_us / static_cast<double>(calls));
}
