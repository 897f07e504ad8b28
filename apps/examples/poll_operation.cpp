// A long operation: started by a POST, then polled until it is done. The policy says which
// responses mean "not yet", so the program needs no loop.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <memory>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Scenario service() {
  Step running(200, R"({"state": "RUNNING"})");
  running.times = 3;
  Scenario scenario;
  scenario.paths["/copies"] = Script({{202, {{"Location", "/operations/7"}}}});
  scenario.paths["/operations/7"] =
      Script({running, {503}, {200, R"({"state": "DONE", "result": "copied"})"}});
  return scenario;
}

// Polls every 50 ms, for at most a minute. Failures in between are retried as usual.
std::shared_ptr<const RetryPolicy> until_done() {
  auto policy = std::make_shared<RetryPolicy>();
  PendingRule pending;
  pending.statuses.add(200);
  pending.json = "/state";
  pending.in = {"RUNNING", "QUEUED"};
  pending.backoff.initial = 50ms;
  policy->retry_on.pending = pending;
  policy->max_elapsed_time = 60s;
  return policy;
}

}  // namespace

int main() {
  FaultServer server(service());
  Client client({retry()});

  const auto started = client.post(server.url("/copies"), R"({"from": "a", "to": "b"})");
  if (!started || started->status != 202) return 1;
  const std::string operation(started->headers.get("Location").value_or("/"));
  std::printf("started as %s\n", operation.c_str());

  CallOptions options;
  options.policy = until_done();
  const auto done = client.send(Request::get(server.url(operation)), options);
  if (!done) return 1;
  for (const auto& attempt : done->history.attempts) {
    std::printf("%6.1f ms  %d %s\n",
                std::chrono::duration<double, std::milli>(attempt.start).count(), attempt.status,
                std::string(to_string(attempt.cls)).c_str());
  }
  const auto result = done->json_at("/result");
  if (!result) return 1;
  std::printf("result: %s\n", std::get<std::string>(*result).c_str());
  return done->history.attempts.size() == 5 ? 0 : 1;
}
