// The first good response of several servers, a task group, and an orderly shutdown.
#include <httpretry/flow/task_group.hpp>
#include <httpretry/flow/when_any.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>

using namespace httpretry;             // NOLINT
using namespace std::chrono_literals;  // NOLINT

namespace {

// Calls all mirrors. Returns the first success, and cancels the other calls.
Task<Outcome> from_any(Client& client, std::vector<std::string> mirrors) {
  std::stop_source losers;
  CallOptions options;
  options.stop = losers.get_token();
  std::vector<Task<Outcome>> calls;
  for (const auto& url : mirrors) calls.push_back(client.co_send(Request::get(url), options));
  auto first = co_await when_any(losers, std::move(calls), succeeded);
  co_return std::move(first.value);
}

Task<> fetch(Client& client, std::string url, std::stop_token stop) {
  CallOptions options;
  options.stop = stop;
  const Outcome outcome = co_await client.co_send(Request::get(url), options);
  if (!outcome) throw Failure(outcome.error());
}

// Fetches all URLs. If one of them fails, cancels the others and throws its exception.
Task<> fetch_all(Client& client, std::vector<std::string> urls) {
  auto begin = [&](TaskGroup& group) -> Task<> {
    for (const auto& url : urls) group.start(fetch(client, url, group.stop()));
    co_return;
  };
  const auto all = run_group(begin);
  co_await all;
}

}  // namespace

int main() {
  Step slow(200, "from the slow mirror");
  slow.delay = 30s;
  FaultServer slow_server({slow});
  FaultServer lost({Step(404, "no such file")});
  FaultServer server({Step(200, "from the fast mirror")});
  Client client;

  // The 404 is no success, so the fast mirror wins.
  const auto outcome =
      sync_wait(from_any(client, {slow_server.url("/"), lost.url("/"), server.url("/")}));
  std::printf("%s\n", outcome ? outcome->body.c_str() : outcome.error().message.c_str());
  // Returns when all three have succeeded, and otherwise throws.
  sync_wait(fetch_all(client, {server.url("/a"), server.url("/b"), server.url("/c")}));

  // An orderly shutdown: calls in flight, such as this one, may end within 10 s.
  client.send_then(Request::get(server.url("/last")), [](const Outcome&) {});
  const auto ends = client.drain(10s);
  std::printf("%zu succeeded, %zu failed, %zu canceled\n", ends.succeeded, ends.failed,
              ends.canceled);
  return outcome && ends.canceled == 0 ? 0 : 1;
}
