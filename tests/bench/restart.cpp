// A server that restarts, and clients that begin while it is away.
//
//   restart CLIENTS OUTAGE_MS    each client makes one call, by the policy `standard`, at the first
//                                instant of an outage of OUTAGE_MS
#include "measure.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT

int main(int argc, char** argv) {
  demand(argc == 3, "usage: restart CLIENTS OUTAGE_MS");
  const auto count = static_cast<std::size_t>(std::atoi(argv[1]));
  const std::chrono::milliseconds outage(std::atoi(argv[2]));
  FaultServer server;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < count; ++i) clients.push_back(Client({retry()}));

  server.stop();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<OutcomeFuture> calls;
  for (auto& client : clients) calls.push_back(client.send_async(Request::get(server.url())));
  std::this_thread::sleep_until(begin + outage);
  server.restart();

  std::size_t survived = 0;
  double first_waits = 0;
  std::size_t attempts = 0;
  for (auto& call : calls) {
    const auto outcome = call.get();
    const auto& history = history_of(outcome);
    demand(history.attempts.front().wait.has_value(), "a first attempt succeeded");
    first_waits +=
        std::chrono::duration<double, std::milli>(*history.attempts.front().wait).count();
    attempts += history.attempts.size();
    survived += succeeded(outcome) ? 1 : 0;
  }
  std::printf(R"({"clients": %zu, "outage_ms": %d, "survived": %zu, "first_wait_ms": %.1f, )"
              R"("attempts": %zu})"
              "\n",
              count, static_cast<int>(outage.count()), survived,
              first_waits / static_cast<double>(count), attempts);
}
