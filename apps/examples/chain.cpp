// A chain with a middleware of your own, a policy in code, and all four send functions.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <future>
#include <string>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Sends two requests, one after the other, and returns the sum of their statuses.
Task<int> two_requests(Client& client, std::string url) {
  Outcome first = co_await client.co_send(Request::get(url));
  Outcome second = co_await client.co_send(Request::get(url));
  co_return (first ? first->status : 0) + (second ? second->status : 0);
}

// Sends all requests at the same time, and returns the outcomes in the order of `urls`.
Task<std::vector<Outcome>> send_all(Client& client, std::vector<std::string> urls) {
  std::vector<Task<Outcome>> calls;
  for (const auto& url : urls) calls.push_back(client.co_send(Request::get(url)));
  std::vector<Outcome> outcomes = co_await when_all(std::move(calls));
  co_return outcomes;
}

// Returns 0 if there is no response.
int status_of(const Outcome& outcome) { return outcome ? outcome->status : 0; }

}  // namespace

int main() {
  FaultServer server;
  const std::string url = server.url("/v1/items");
  const std::string tenant = "7";

  RetryPolicy policy;  // the preset `standard`
  policy.max_attempts = 6;
  policy.backoff.initial = 50ms;

  ClientOptions options;
  options.policies = policy;
  options.call_middlewares = {log()};
  options.attempt_middlewares = {
      retry_if([](const Outcome& outcome) { return outcome && outcome->body == "warming up"; }),
      timeout(2s),
      on_request("tenant",
                 [tenant](Request& request, Call&) { request.set_header("X-Tenant", tenant); }),
  };
  Client client(options);

  // The send functions: blocking, with a future, with a callback, and in coroutines.
  Outcome blocking = client.send(Request::get(url));

  auto future = client.send_async(Request::get(url));

  std::promise<int> status;
  client.send_then(Request::get(url), [&status](Outcome outcome) {
    status.set_value(outcome ? outcome->status : 0);  // runs on the client's thread: must not block
  });

  const int sum = sync_wait(two_requests(client, url));

  const auto outcomes = sync_wait(send_all(client, {url, url, url}));

  std::printf("%d %d %d %d %d\n", status_of(blocking), status_of(future.get()),
              status.get_future().get(), sum, status_of(outcomes.back()));
  const bool good = status_of(blocking) == 200 && sum == 200 + 200;
  return good && server.seen()[0].headers.get("X-Tenant") == "7" ? 0 : 1;
}
