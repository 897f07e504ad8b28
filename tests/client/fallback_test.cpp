#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/client/report.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

RetryPolicy twice() {
  auto policy = steady_policy();
  policy.max_attempts = 2;
  return policy;
}

Fallback always(Response response) {
  return [response](const Request&, const Outcome&, Call&) { return std::optional(response); };
}

// Counts its calls in `count`, and makes no response.
Fallback never(int& count) {
  return [&count](const Request&, const Outcome&, Call&) -> std::optional<Response> {
    ++count;
    return std::nullopt;
  };
}

}  // namespace

TEST_CASE("fallback: a call that has failed for good gets the response, and its history stays") {
  const Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({fallback(always(Response(200, "default"))), retry(twice())});
  const auto request = Request::get("http://user:secret@x/items?page=2");
  const auto outcome = client.send(request);
  REQUIRE(outcome);
  CHECK(succeeded(outcome));
  CHECK(outcome->from_fallback);
  CHECK(outcome->status == 200);
  CHECK(outcome->body == "default");
  CHECK(outcome->url == "http://x/items?page=2");
  CHECK(outcome->history.stop_reason == Reason::AttemptsExhausted);
  REQUIRE(outcome->history.attempts.size() == 2);
  CHECK(outcome->history.attempts[1].status == 503);
  CHECK(describe(outcome) ==
        "gave up after 2 attempts in 1.00 s: 503 each time (attempts_exhausted); a fallback was "
        "used");
  const auto report = report_json(request, outcome);
  CHECK(report.find(R"("fallback": true)") != std::string::npos);
  CHECK(report.find(R"("status": 200)") != std::string::npos);
}

TEST_CASE("fallback: the function sees the failure with its history, and may let it fail") {
  const Conversation talk;
  talk.network->say(Response(503, "overloaded"));
  std::string seen;
  const auto look = [&](const Request& request, const Outcome& failure, Call&) {
    seen = request.url() + " " + failure->body + " " +
           std::to_string(failure->history.attempts.size()) + " " +
           std::string(to_string(failure->history.stop_reason));
    return std::optional<Response>();
  };
  auto client = talk.client({fallback(look), retry(twice())});
  const auto outcome = client.get("http://x/items");
  CHECK(seen == "http://x/items overloaded 2 attempts_exhausted");
  REQUIRE(outcome);
  CHECK(outcome->status == 503);
  CHECK_FALSE(outcome->from_fallback);
  CHECK_FALSE(succeeded(outcome));
  CHECK(report_json(Request::get("http://x/"), outcome).find("fallback") == std::string::npos);
}

TEST_CASE("fallback: an error becomes a response as well") {
  const Conversation talk;
  talk.network->say(error_of(Errc::Connect));
  auto client = talk.client({fallback(always(Response(200))), retry(twice())});
  const auto outcome = client.get("http://x/");
  REQUIRE(outcome);
  CHECK(succeeded(outcome));
  CHECK(outcome->history.attempts[1].error == Errc::Connect);
}

TEST_CASE("fallback: not for a success, a canceled call or an invalid request") {
  int calls = 0;
  const Conversation talk;
  talk.network->say(Response(200)).say(Response(503));
  auto client = talk.client({fallback(never(calls)), retry(twice())});
  CHECK(succeeded(client.get("http://x/")));
  CHECK(client.get("nonsense").error().code == Errc::InvalidRequest);
  std::stop_source stop;
  stop.request_stop();
  const auto canceled = client.get("http://x/", CallOptions().with_stop(stop.get_token()));
  CHECK(canceled.error().code == Errc::Canceled);
  CHECK(calls == 0);
  CHECK(client.get("http://x/")->status == 503);
  CHECK(calls == 1);
}

TEST_CASE("fallback: without retry, the attempt in the history is the failed one") {
  const Conversation talk;
  talk.network->say(Response(404));
  auto client = talk.client({fallback(always(Response(200)))});
  const auto outcome = client.get("http://x/");
  CHECK(outcome->status == 200);
  REQUIRE(outcome->history.attempts.size() == 1);
  CHECK(outcome->history.attempts[0].status == 404);
  CHECK(outcome->history.stop_reason == Reason::NotRetryable);
}

TEST_CASE("fallback: its response may itself be a failure") {
  const Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({fallback(always(Response(404))), retry(twice())});
  const auto outcome = client.get("http://x/");
  CHECK(outcome->from_fallback);
  CHECK_FALSE(succeeded(outcome));
}

TEST_CASE("fallback: a sink gets the body of the response") {
  const Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({fallback(always(Response(200, "default"))), retry(twice())});
  std::string body;
  auto request = Request::get("http://x/");
  request.sink(pass_to([&](std::string_view bytes) { body += bytes; }));
  const auto outcome = client.send(request);
  REQUIRE(outcome);
  CHECK(body == "default");
  CHECK(outcome->delivered == 7);
}

TEST_CASE("fallback: a body that a rule called a failure is replaced in the sink") {
  const Conversation talk;
  talk.network->say(Response(200, R"({"error":"busy"})"));
  auto policy = twice();
  policy.retry_on.statuses.add(200);
  auto client = talk.client({fallback(always(Response(200, "default"))), retry(policy)});
  std::string body;
  auto request = Request::get("http://x/");
  request.sink(pass_to([&](std::string_view bytes) { body += bytes; }));
  CHECK(succeeded(client.send(request)));
  CHECK(body == "default");
}

TEST_CASE("fallback: an exception of the function ends the call with an error that names it") {
  const Conversation talk;
  talk.network->say(Response(503));
  const auto broken = [](const Request&, const Outcome&, Call&) -> std::optional<Response> {
    throw std::runtime_error("no copy");
  };
  auto client = talk.client({fallback(broken), retry(twice())});
  const auto outcome = client.get("http://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Internal);
  CHECK(outcome.error().message.find("fallback") != std::string::npos);
}

TEST_CASE("fallback: below retry it is refused, and so is an empty function") {
  CHECK_THROWS_WITH_AS(
      Client(ClientOptions().with_attempt_middleware(fallback(always(Response(200))))),
      doctest::Contains("fallback is below retry"), std::invalid_argument);
  CHECK_THROWS_AS((void)fallback(nullptr), std::invalid_argument);
}
