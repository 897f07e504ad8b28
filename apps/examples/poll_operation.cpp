// A long operation, which a POST starts and which is then polled until it is done. The policy says
// which responses mean "not yet", and which header has the URL to poll. So the program needs no
// loop: everything is one call.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
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
RetryPolicy until_done() {
  RetryPolicy policy;
  PendingRule pending;
  pending.statuses.add(200);
  pending.json = "/state";
  pending.in = {"RUNNING", "QUEUED"};
  pending.backoff.initial = 50ms;  // does not grow: polls have a constant backoff by default
  pending.url_from = {"Operation-Location", "Location"};
  policy.retry_on.pending = pending;
  // The response to the POST has no state yet. So a 202 with a Location also means "not yet".
  ErrorRule accepted;
  accepted.status = StatusSet{202};
  accepted.source = ErrorRule::Source::Header;
  accepted.selector = "Location";
  accepted.as = Class::Pending;
  policy.retry_on.error_codes.push_back(accepted);
  policy.max_elapsed_time = 60s;
  return policy;
}

}  // namespace

int main() {
  FaultServer server(service());
  Client client;

  const auto done = client.post(server.url("/copies"), R"({"from": "a", "to": "b"})",
                                CallOptions().with_policy(until_done()));
  if (!done) return 1;
  const auto& history = done->history;
  for (const auto& attempt : history.attempts) {
    const auto* polled = history.polled_by(attempt);  // the URL, or nullptr for the POST
    std::printf("%6.1f ms  %d %s %s\n",
                std::chrono::duration<double, std::milli>(attempt.start).count(), attempt.status,
                std::string(to_string(attempt.cls)).c_str(), polled ? polled->url.c_str() : "");
  }
  std::printf("result: %s\n", done->json_text("/result").c_str());
  // The POST, three polls of the running operation, the 503, and the result.
  return history.attempts.size() == 6 ? 0 : 1;
}
