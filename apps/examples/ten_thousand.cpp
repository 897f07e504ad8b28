// Ten thousand calls at the same time on one thread. At most 64 requests are in flight at any time.
// A call that waits for a retry needs neither a thread nor a connection.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <future>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// One response in fifty is a 503.
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
  options.max_in_flight = 64;  // further requests wait in a queue; send_async does not block
  Client client(options);

  const auto start = std::chrono::steady_clock::now();
  std::vector<std::future<Outcome>> calls;
  calls.reserve(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(client.send_async(Request::get(server.url("/" + std::to_string(i)))));
  }
  int good = 0;
  std::size_t attempts = 0;
  for (auto& call : calls) {
    const auto outcome = call.get();
    if (succeeded(outcome)) ++good;
    attempts += history_of(outcome).attempts.size();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  std::printf("%d of %d calls succeeded, by %zu requests on %zu connections, in %.1f s\n", good,
              kCalls, server.requests(), server.connections(), elapsed.count());
  return good == kCalls && attempts == server.requests() ? 0 : 1;
}
