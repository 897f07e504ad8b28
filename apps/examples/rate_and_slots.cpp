// An API that allows ten requests a second and three at once. Forty calls begin at the same time,
// and the client sends them within these limits.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

int main() {
  // Each response of the API takes 20 ms.
  Step answer(200, "ok");
  answer.delay = 20ms;
  FaultServer api({answer});

  RetryPolicy policy;
  policy.guards.rate = RatePolicy::per_second(10);
  policy.guards.rate->burst = 10;  // requests that the rate does not delay after an idle time
  policy.guards.concurrency.emplace().max = 3;
  Client client(ClientOptions().with_policies(policy));

  constexpr int kCalls = 40;
  std::vector<OutcomeFuture> calls;
  for (int i = 0; i < kCalls; ++i) calls.push_back(client.send_async(Request::get(api.url())));
  Duration longest_wait{};
  for (auto& call : calls) {
    const auto response = call.get().value();  // throws if there is none
    const auto& attempt = response.history.attempts.front();
    longest_wait = std::max(longest_wait, attempt.exchange().timings.queued);
  }

  const auto seen = api.seen();
  const auto elapsed = seen.back().arrived - seen.front().arrived;
  std::printf("%zu requests in %.1f s; the longest wait was %.1f s\n", seen.size(),
              std::chrono::duration<double>(elapsed).count(),
              std::chrono::duration<double>(longest_wait).count());
  // The rate lets ten start without a wait, and thirty at ten a second: 3 s, less a tolerance for
  // when they arrive.
  return seen.size() == kCalls && elapsed >= 2900ms ? 0 : 1;
}
