// The headers that tell the server about attempts and the time left, in virtual time.
#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/guard/hedge.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr auto* kAttempt = "X-Retry-Attempt";
constexpr auto* kDeadline = "X-Request-Timeout-Ms";

RetryPolicy telling_policy() {
  auto policy = steady_policy();
  policy.attempt_header = kAttempt;
  policy.deadline_header = kDeadline;
  policy.max_elapsed_time = 10s;
  return policy;
}

// "0 10000": the values of both headers, "-" for one that was not sent.
std::string told(const Request& request, const char* deadline = kDeadline) {
  const auto value = [&](const char* name) {
    return std::string(request.headers().get(name).value_or("-"));
  };
  return value(kAttempt) + " " + value(deadline);
}

std::vector<std::string> all_told(const Conversation& talk) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < talk.sends(); ++i) all.push_back(told(talk.sent(i)));
  return all;
}

using Told = std::vector<std::string>;

}  // namespace

TEST_CASE("each send says which attempt it is, and how much time is left") {
  Conversation talk;
  talk.network->say(Response(503), 250ms).say(error_of(Errc::Receive)).say(Response(200));
  auto client = talk.client({retry(telling_policy())});
  CHECK(client.get("http://x/")->status == 200);
  CHECK(all_told(talk) == Told{"0 10000", "1 8750", "2 6750"});

  // The next call counts anew.
  CHECK(client.get("http://x/")->status == 200);
  CHECK(told(talk.sent(3)) == "0 10000");
}

TEST_CASE("a policy without the keys adds no headers, and each key works alone") {
  for (const bool attempt : {false, true}) {
    for (const bool deadline : {false, true}) {
      Conversation talk;
      talk.network->say(Response(200));
      auto policy = telling_policy();
      if (!attempt) policy.attempt_header.clear();
      if (!deadline) policy.deadline_header.clear();
      REQUIRE(talk.client({retry(policy)}).get("http://x/"));
      CHECK(told(talk.sent(0)) == std::string(attempt ? "0 " : "- ") + (deadline ? "10000" : "-"));
      CHECK(talk.sent(0).headers().size() == (attempt ? 1U : 0U) + (deadline ? 1U : 0U));
    }
  }
}

TEST_CASE("the time left is that of the first limit that ends the attempt") {
  struct Row {
    Duration elapsed;
    Duration attempt;
    Duration call;
    Duration respond_within;  // RequestOptions::respond_by
    const char* told;
  };
  for (const auto& row :
       {Row{10s, kForever, kForever, kForever, "10000"}, Row{10s, 2s, kForever, kForever, "2000"},
        Row{10s, 2s, 1500ms, kForever, "1500"}, Row{kForever, kForever, 3s, kForever, "3000"},
        Row{kForever, 4s, kForever, kForever, "4000"}, Row{10s, kForever, kForever, 700ms, "700"},
        Row{1999999ns, kForever, kForever, kForever, "1"},
        Row{1ns, kForever, kForever, kForever, "0"},
        Row{kForever, kForever, kForever, kForever, "-"}}) {
    Conversation talk;
    talk.network->say(Response(200));
    auto policy = telling_policy();
    policy.max_elapsed_time = row.elapsed;
    policy.attempt_timeout = row.attempt;
    auto request = Request::get("http://x/");
    request.edit_options().timeout = row.call;
    request.edit_options().respond_by = later(talk.clock->now(), row.respond_within);
    REQUIRE(talk.client({retry(policy)}).send(request));
    CHECK(told(talk.sent(0)) == "0 " + std::string(row.told));
  }
}

TEST_CASE("a deadline in grpc-timeout has at most eight digits and a unit") {
  for (const auto& [left, value] : {std::pair<Duration, const char*>{1500ms, "1500m"},
                                    {1ns, "0m"},
                                    {99999999ms, "99999999m"},
                                    {100000000ms, "100000S"},
                                    {99999999s, "99999999S"},
                                    {100000000s, "27777H"}}) {
    for (const auto* name : {"grpc-timeout", "Grpc-Timeout"}) {
      Conversation talk;
      talk.network->say(Response(200));
      auto policy = telling_policy();
      policy.deadline_header = name;
      policy.max_elapsed_time = kForever;
      CallOptions options;
      options.timeout = left;
      REQUIRE(talk.client({retry(policy)}).send(Request::get("http://x/"), options));
      CHECK(told(talk.sent(0), name) == "0 " + std::string(value));
    }
  }
  Conversation talk;
  talk.network->say(Response(200));
  auto policy = telling_policy();
  policy.deadline_header = "x-envoy-expected-rq-timeout-ms";
  REQUIRE(talk.client({retry(policy)}).get("http://x/"));
  CHECK(told(talk.sent(0), "x-envoy-expected-rq-timeout-ms") == "0 10000");
}

TEST_CASE("a redirected request counts its own attempts, and another origin is told nothing") {
  Conversation talk;
  talk.network->say(Response(503))
      .say(redirect_to(302, "/there"))
      .say(Response(503))
      .say(redirect_to(302, "http://other/"))
      .say(Response(503))
      .say(redirect_to(302, "http://x/home"))
      .say(Response(200));
  REQUIRE(talk.client({redirect(), retry(telling_policy())}).get("http://x/"));
  CHECK(all_told(talk) == Told{"0 10000", "1 9000", "0 10000", "1 9000", "- -", "- -", "0 10000"});
}

TEST_CASE("a header that the request already has stays") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  const auto request =
      Request::get("http://x/").set_header("x-retry-attempt", "mine").set_header(kDeadline, "7");
  REQUIRE(talk.client({retry(telling_policy())}).send(request));
  CHECK(all_told(talk) == Told{"mine 7", "mine 7"});
  CHECK(talk.sent(1).headers().size() == 2);
}

TEST_CASE("a hedge is a send of its own") {
  Conversation talk;
  talk.network->say(Response(200), 1h).say(Response(503), 100ms).say(Response(200));
  auto policy = telling_policy();
  policy.attempt_timeout = 800ms;
  policy.hedge.emplace();
  policy.hedge->after = 200ms;
  policy.hedge->budget.reset();
  REQUIRE(talk.client({retry(policy), hedge()}).get("http://x/"));
  // The hedge goes out at 200 ms, the first send ends at 800 ms, and the retry follows after 1 s.
  CHECK(all_told(talk) == Told{"0 800", "1 800", "2 800"});
}

TEST_CASE("a wait for admission shortens the time left") {
  Conversation talk;
  talk.network->say(Response(200), 3s);
  ClientOptions options;
  options.middlewares = {retry(telling_policy())};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.max_in_flight = 1;
  Client client(options);
  for (int i = 0; i < 2; ++i) client.send_then(Request::get("http://x/"), [](const Outcome&) {});
  talk.clock->advance(6s);
  CHECK(all_told(talk) == Told{"0 10000", "0 7000"});
}

TEST_CASE("a middleware below retry that sends twice has two sends with the same headers") {
  Conversation talk;
  talk.network->say(Response(401)).say(Response(200));
  const auto again =
      middleware("again", [](Request request, Call& call, Next next) -> Task<Outcome> {
        Outcome first = co_await next(request, call);
        if (first && first->status != 401) co_return first;
        Outcome second = co_await next(std::move(request), call);
        co_return second;
      });
  REQUIRE(talk.client({retry(telling_policy()), again}).get("http://x/"));
  CHECK(all_told(talk) == Told{"0 10000", "0 10000"});
}
