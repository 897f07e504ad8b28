// Reads from a server with a slow replica. A request that has no response after 50 ms is sent
// again, and the first response is used.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

int main() {
  // Every tenth request reaches the replica that takes two seconds.
  std::atomic<int> seen = 0;
  Step replicas;
  replicas.respond = [&](const SeenRequest& /*request*/) {
    Step reply(200, "42");
    if (++seen % 10 == 0) reply.delay = 2s;
    return reply;
  };
  FaultServer server({replicas});

  RetryPolicy policy;
  policy.hedge.emplace().after = 50ms;
  policy.hedge->budget = 0.2;  // at most one hedge for five calls
  // The client's default chain of middlewares already has hedge(), so a policy is enough.
  Client client(ClientOptions().with_policies(policy));

  int hedges = 0;
  Duration slowest{};
  for (int i = 0; i < 50; ++i) {
    const auto outcome = client.get(server.url("/answer"));
    if (!outcome) return 1;
    for (const auto& attempt : outcome->history.attempts) {
      if (attempt.hedge) ++hedges;
    }
    slowest = std::max(slowest, outcome->history.elapsed);
  }
  std::printf("50 calls, %zu requests, %d hedges; the slowest took %lld ms\n", server.requests(),
              hedges, static_cast<long long>(slowest / 1ms));
  return hedges > 0 && server.requests() == 50U + static_cast<std::size_t>(hedges) ? 0 : 1;
}
