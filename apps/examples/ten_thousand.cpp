// Ten thousand requests at once, on one thread: all are begun, 64 of them are with the server at
// any time, and of those that it turns away each waits for its retry without a thread or a
// connection.
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <future>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// One answer in fifty is a 503.
Scenario mostly_good() {
  Step good(200, "ok");
  good.times = 49;
  Scenario scenario({good, {503}});
  scenario.then = Then::Restart;
  return scenario;
}

}  // namespace

int main() {
  constexpr int kCalls = 10'000;
  FaultServer server(mostly_good());

  RetryPolicy policy;
  policy.max_attempts = 8;
  policy.backoff.initial = 10ms;
  ClientOptions options;
  options.middlewares = {retry(policy)};
  options.max_in_flight = 64;
  Client client(options);

  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<Outcome>> calls;
  calls.reserve(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(client.send_async(Request::get(server.url("/" + std::to_string(i)))));
  }
  int good = 0;
  std::size_t attempts = 0;
  for (auto& call : calls) {
    const auto outcome = call.get();
    if (outcome && outcome->ok()) ++good;
    attempts += history_of(outcome).attempts.size();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  std::printf("%d of %d calls succeeded, by %zu requests on %zu connections, in %.1f s\n", good,
              kCalls, server.requests(), server.connections(), took.count());
  return good == kCalls && attempts == server.requests() ? 0 : 1;
}
