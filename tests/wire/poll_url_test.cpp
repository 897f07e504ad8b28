// Polling a URL that a response names, on the wire: what the servers see.
#include "sinks.hpp"
#include "wire.hpp"

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

RetryPolicy polling(std::vector<std::string> origins = {}) {
  auto policy = hasty();
  auto& pending = policy.retry_on.pending.emplace();
  pending.statuses = {202};
  pending.backoff.initial = 1ms;
  pending.url_from = {"Operation-Location", "Location"};
  pending.origins = std::move(origins);
  return policy;
}

Step accepted(const std::string& url) { return {202, {{"Operation-Location", url}}}; }

Request order(const FaultServer& server) {
  return Request::post(server.url("/orders"), "secret order")
      .set_header("Content-Type", "text/plain")
      .set_header("X-Api-Key", "secret")
      .set_header("Cookie", "session=secret")
      .set_header("Accept", "text/plain");
}

}  // namespace

TEST_CASE(
    "an accepted upload is polled at the same origin with its secrets, and without its body") {
  FaultServer server(Scenario{accepted("/operations/7?n=1"), {202}, {503}, {200, "done"}});
  const auto outcome = Client({retry(polling()), bearer("secret")}).send(order(server));
  REQUIRE(outcome);
  CHECK(outcome->body == "done");
  CHECK(outcome->url == server.url("/operations/7?n=1"));
  const auto seen = server.seen();
  REQUIRE(seen.size() == 4);
  CHECK(seen[0].method == "POST");
  for (std::size_t i = 1; i < seen.size(); ++i) {
    CHECK(seen[i].method == "GET");
    CHECK(seen[i].target == "/operations/7?n=1");
    CHECK(seen[i].body.empty());
    CHECK_FALSE(seen[i].headers.contains("Content-Type"));
    CHECK_FALSE(seen[i].headers.contains("Content-Length"));
    CHECK(seen[i].headers.get("Authorization") == "Bearer secret");
    CHECK(seen[i].headers.get("Cookie") == "session=secret");
    CHECK(seen[i].headers.get("X-Api-Key") == "secret");
  }
}

TEST_CASE("no secret reaches a listed origin that is polled, whatever kind it is") {
  FaultServer status(Scenario{{202}, {200, "done"}});
  const std::string origin = "http://127.0.0.1:" + std::to_string(status.port());
  FaultServer server(Scenario{accepted(status.url("/7"))});
  auto request = order(server);
  request.edit_options().credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  const auto outcome = Client({redirect(), retry(polling({origin}))}).send(request);
  REQUIRE(outcome);
  CHECK(outcome->body == "done");

  const auto with_token = Client({retry(polling({origin})), bearer("secret")}).send(order(server));
  REQUIRE(with_token);
  REQUIRE(status.requests() == 3);
  for (const auto& seen : status.seen()) {
    CHECK(seen.method == "GET");
    CHECK(seen.body.empty());
    CHECK(seen.headers.get("Accept") == "text/plain");
    CHECK_FALSE(seen.headers.contains("Authorization"));
    for (const auto field : seen.headers) CHECK(field.value.find("secret") == std::string::npos);
  }
}

TEST_CASE("an origin that is not listed is not even connected to") {
  FaultServer stranger;
  FaultServer server(Scenario{accepted(stranger.url("/7?t=secret"))});
  const auto outcome = Client({redirect(), retry(polling())}).send(order(server));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Protocol);
  CHECK(outcome.error().message.find("retry_on.pending.origins") != std::string::npos);
  CHECK(outcome.error().message.find("secret") == std::string::npos);
  CHECK(stranger.requests() == 0);
  CHECK(server.requests() == 1);
}

TEST_CASE("a poll that is redirected elsewhere takes neither body nor secrets along") {
  FaultServer result(Scenario{{200, "result"}});
  FaultServer server(
      Scenario{accepted("/operations/7"), {307, {{"Location", result.url("/result")}}, ""}});
  const auto outcome = Client({redirect(), retry(polling())}).send(order(server));
  REQUIRE(outcome);
  CHECK(outcome->body == "result");
  REQUIRE(result.requests() == 1);
  const auto seen = result.seen()[0];
  CHECK(seen.method == "GET");
  CHECK(seen.body.empty());
  for (const auto field : seen.headers) CHECK(field.value.find("secret") == std::string::npos);
}

TEST_CASE("the body of the last poll goes to the sink, and that of no other") {
  FaultServer server(
      Scenario{{202, {{"Location", "/7"}}, "accepted"}, {202, "running"}, {200, "result"}});
  std::string text;
  auto request = Request::post(server.url("/orders"), "order");
  request.edit_options().sink = append_to(text);
  const auto outcome = Client({retry(polling())}).send(request);
  REQUIRE(outcome);
  CHECK(text == "result");
}
