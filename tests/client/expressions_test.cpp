// Requests, calls and clients that are written in one expression.
#include "conversation.hpp"

#include <httpretry/guard/guards.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

MiddlewarePtr counting(std::string name, int& count) {
  return on_request(std::move(name), [&count](Request&, Call&) { ++count; });
}

RetryPolicy twice() { return RetryPolicy::standard({.max_attempts = 2}); }

}  // namespace

TEST_CASE("added middlewares keep the default ones, and run once per call or once per attempt") {
  const Conversation talk;
  talk.network->say(redirect_to(302, "/new")).say(Response(503)).say(Response(200));
  int calls = 0;
  int attempts = 0;
  ClientOptions options;
  options.scheduler = talk.clock;
  options.transport = talk.network;
  Client client(options.with_call_middleware(counting("calls", calls))
                    .with_attempt_middleware(counting("attempts", attempts)));

  CHECK(client.get("http://x/old")->status == 200);

  CHECK(calls == 1);
  CHECK(attempts == 3);
}

TEST_CASE("an added middleware must stand where the chain allows it") {
  CHECK_THROWS_WITH_AS(Client(ClientOptions().with_attempt_middleware(retry())),
                       doctest::Contains("two retry middlewares"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(Client(ClientOptions().with_call_middleware(guards())),
                       doctest::Contains("guards"), std::invalid_argument);
  CHECK_THROWS_AS(Client(ClientOptions().with_call_middleware(nullptr)), std::invalid_argument);
}

TEST_CASE("the functions for one method take the options of the call") {
  const Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({retry()});
  const auto options = CallOptions().with_policy(twice());
  const auto sends = [&](auto send) {
    const auto before = talk.sends();
    CHECK(send()->status == 503);
    return talk.sends() - before;
  };
  CHECK(sends([&] { return client.get("http://a/", options); }) == 2);
  CHECK(sends([&] { return client.head("http://b/", options); }) == 2);
  CHECK(sends([&] { return client.del("http://c/", options); }) == 2);
  CHECK(sends([&] { return client.put("http://d/", "text", options); }) == 2);
  CHECK(sends([&] { return client.post("http://e/", "text", options); }) == 1);  // unsafe
  CHECK(sends([&] { return client.patch("http://f/", "text", options); }) == 1);
  CHECK(talk.sent(9).method() == "PATCH");
  CHECK(*talk.sent(9).body().bytes() == "text");
}

TEST_CASE("a call may be limited by its options, by its request, or by both") {
  const auto elapsed_with = [](Duration of_call, Duration of_request) {
    const Conversation talk;
    talk.network->say(Response(200), 10s);
    auto client = talk.client({});
    const auto outcome = client.send(Request::get("http://x/").timeout(of_request),
                                     CallOptions().with_timeout(of_call));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Timeout);
    return history_of(outcome).elapsed;
  };
  CHECK(elapsed_with(1.5s, kForever) == 1500ms);
  CHECK(elapsed_with(kForever, 2.5s) == 2500ms);
  CHECK(elapsed_with(3s, 2s) == 2s);
  CHECK(elapsed_with(2s, 3s) == 2s);
}

TEST_CASE("a request is written in one expression") {
  const auto request = Request::post("http://x/", "text")
                           .header("Content-Type", "text/plain")
                           .header("Content-Type", "text/markdown")
                           .credentials({Credentials::Scheme::Digest, "ann", "secret"})
                           .timeout(std::chrono::duration<double>(0.25))
                           .policy(twice())
                           .on_progress([](const Progress&) {});
  CHECK(request.headers().get("Content-Type") == "text/markdown");
  CHECK(request.options().credentials->user == "ann");
  CHECK(request.options().timeout == 250ms);
  CHECK(request.options().policy->max_attempts == 2);
  CHECK(request.options().on_progress);
  CHECK(RatePolicy::per_second(5).requests == 5);
  CHECK(RatePolicy::per_second(5).per == 1s);
}

TEST_CASE("a policy of a call is a value, a pointer or nothing") {
  CallPolicy policy = twice();
  CHECK(policy->max_attempts == 2);
  policy = std::make_shared<RetryPolicy>(RetryPolicy::standard({.max_attempts = 7}));
  CHECK(policy->max_attempts == 7);
  policy = nullptr;
  CHECK_FALSE(policy);
}

TEST_CASE("also_retry adds statuses to those of the preset") {
  const auto policy = RetryPolicy::standard({.also_retry = {404, 409}});
  CHECK(policy.retry_on.statuses.contains(404));
  CHECK(policy.retry_on.statuses.contains(409));
  CHECK(policy.retry_on.statuses.contains(500));
  CHECK_FALSE(policy.retry_on.statuses.contains(410));
}

TEST_CASE("retry_if retries what the policy does not") {
  struct Row {
    const char* what;
    Outcome first;
    bool asked;
    std::size_t sends;
  };
  Error permanent(Errc::Tls, "not trusted");
  permanent.permanent = true;
  Response delivered(200);
  delivered.delivered = 1;
  const std::vector<Row> rows{
      {"a success", Response(200), true, 2},
      {"a final status", Response(404), true, 2},
      {"a retried status", Response(503), true, 2},
      {"a final error", permanent, true, 2},
      {"a retried error", error_of(Errc::Connect), true, 2},
      {"a canceled call", error_of(Errc::Canceled), false, 1},
      {"a refused request", error_of(Errc::InvalidRequest), false, 1},
      {"a body that a sink has", delivered, false, 1},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    const Conversation talk;
    talk.network->say(row.first).say(Response(200, "done"));
    bool asked = false;
    auto client = talk.client({retry(), retry_if([&](const Outcome& outcome) {
                                 asked = true;
                                 return !outcome || outcome->body != "done";
                               })});
    const auto outcome = client.get("http://x/");
    CHECK(talk.sends() == row.sends);
    if (talk.sends() == 2) CHECK(outcome->body == "done");
    if (talk.sends() == 1) CHECK(asked == row.asked);
  }
}

TEST_CASE("the limits of the policy hold for retry_if") {
  const Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({retry(twice()), retry_if([](const Outcome&) { return true; })});

  const auto outcome = client.get("http://x/");
  CHECK(talk.sends() == 2);
  CHECK_FALSE(succeeded(outcome));
  CHECK(history_of(outcome).stop_reason == Reason::AttemptsExhausted);
  CHECK(history_of(outcome).attempts[0].rule == "retry_if");
  CHECK(history_of(outcome).attempts[0].cls == Class::Transient);

  const auto unsafe = client.post("http://x/", "text");
  CHECK(talk.sends() == 3);
  CHECK(history_of(unsafe).stop_reason == Reason::UnsafeToRepeat);
}
