#include "conversation.hpp"
#include "policies.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("methods and bodies across a redirect follow RFC 9110") {
  struct Row {
    int status;
    const char* method;
    const char* method_after;
    bool body_after;
  };
  const std::vector<Row> rows{
      {301, "GET", "GET", false},   {302, "GET", "GET", false},    {303, "GET", "GET", false},
      {307, "GET", "GET", false},   {308, "GET", "GET", false},    {301, "POST", "GET", false},
      {302, "POST", "GET", false},  {303, "POST", "GET", false},   {307, "POST", "POST", true},
      {308, "POST", "POST", true},  {301, "PUT", "PUT", true},     {302, "PUT", "PUT", true},
      {303, "PUT", "GET", false},   {307, "PATCH", "PATCH", true}, {303, "HEAD", "HEAD", false},
      {302, "HEAD", "HEAD", false}, {303, "DELETE", "GET", false}, {308, "DELETE", "DELETE", false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.status);
    CAPTURE(row.method);
    Conversation talk;
    talk.network->say(redirect_to(row.status, "/next")).say(Response(200));
    Request request(row.method, "http://x/a");
    const bool writes = std::string_view("POST PUT PATCH").find(row.method) != std::string::npos;
    if (writes) request.set_body("data").set_header("Content-Type", "text/plain");

    REQUIRE(talk.client({redirect()}).send(request)->status == 200);

    CHECK(talk.sent(1).url() == "http://x/next");
    CHECK(talk.sent(1).method() == row.method_after);
    CHECK(talk.sent(1).body().present() == (row.body_after && writes));
    CHECK(talk.sent(1).headers().contains("Content-Type") == (row.body_after && writes));
  }
}

TEST_CASE("a POST stays a POST after the statuses that the options name") {
  for (const int status : {301, 302, 303}) {
    for (const int named : {301, 302, 303}) {
      Conversation talk;
      talk.network->say(redirect_to(status, "/next")).say(Response(200));
      RedirectOptions options;
      options.keep_post_after = {named};
      REQUIRE(talk.client({redirect(options)}).send(Request::post("http://x/a", "data")));
      CHECK(talk.sent(1).method() == (status == named ? "POST" : "GET"));
      CHECK(talk.sent(1).body().present() == (status == named));
    }
  }
}

TEST_CASE("another origin that is trusted gets everything except Host") {
  Conversation talk;
  talk.network->say(redirect_to(307, "http://y/next")).say(Response(200));
  RedirectOptions options;
  options.trust_other_origins = true;
  auto request = Request::post("http://me:pw@x/a", "data")
                     .set_header("X-Key", "secret")
                     .set_header("Host", "z");
  request.edit_options().credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");

  REQUIRE(talk.client({redirect(options)}).send(request));

  CHECK(talk.sent(1).url() == "http://me:pw@y/next");
  CHECK(talk.sent(1).headers().get("X-Key") == "secret");
  CHECK_FALSE(talk.sent(1).headers().contains("Host"));
  CHECK(talk.sent(1).body().present());
  CHECK(talk.sent(1).options().credentials.has_value());
}

TEST_CASE("answers that are no redirect, or say not where to, are handed out") {
  for (const int status : {300, 304, 305, 306, 200, 404}) {
    Conversation talk;
    talk.network->say(redirect_to(status, "/next"));
    CHECK(talk.client({redirect()}).get("http://x/")->status == status);
    CHECK(talk.sends() == 1);
  }
  Conversation nowhere;
  nowhere.network->say(Response(302));
  CHECK(nowhere.client({redirect()}).get("http://x/")->status == 302);
}

TEST_CASE("a redirect of a relative URL refers to the URL that a middleware below has made of it") {
  const auto completes = on_request("completes", [](Request& request, Call&) {
    if (!request.parsed_url()) request.set_url("http://x" + request.url());
  });
  Conversation talk;
  talk.network->say(redirect_to(302, "b")).say(Response(200));
  CHECK(talk.client({redirect(), completes}).get("/dir/a")->status == 200);
  CHECK(talk.sent(1).url() == "http://x/dir/b");

  const auto responds = middleware("responds", [](Request, Call&, Next) -> Task<Outcome> {
    co_return Outcome(redirect_to(302, "/b"));
  });
  CHECK(Conversation().client({redirect(), responds}).get("/a")->status == 302);
}

TEST_CASE("redirects are counted, and one more than the limit is an error") {
  Conversation talk;
  talk.network->say(redirect_to(302, "/again"));
  RedirectOptions options;
  options.limit = 3;
  const auto outcome = talk.client({redirect(options)}).get("http://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Protocol);
  CHECK(outcome.error().curl_code == 47);
  CHECK(outcome.error().message == "more than 3 redirects");
  CHECK(talk.sends() == 4);
}

TEST_CASE("a redirect from https to http is refused unless it is allowed") {
  Conversation talk;
  talk.network->say(redirect_to(302, "http://x/plain")).say(Response(200));
  const auto outcome = talk.client({redirect()}).get("https://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message == "a redirect from https to http://x/plain is not followed");
  CHECK(talk.sends() == 1);

  Conversation allowed;
  allowed.network->say(redirect_to(302, "http://x/plain")).say(Response(200));
  RedirectOptions options;
  options.allow_downgrade = true;
  CHECK(allowed.client({redirect(options)}).get("https://x/")->status == 200);
}

TEST_CASE("nothing that may be a secret follows to another origin") {
  for (const char* elsewhere : {"http://y/", "https://x/", "http://x:8080/"}) {
    CAPTURE(elsewhere);
    Conversation talk;
    talk.network->say(redirect_to(302, elsewhere)).say(Response(200));
    auto request = Request::get("http://x/")
                       .set_header("Authorization", "Bearer s")
                       .set_header("Cookie", "s=1")
                       .set_header("X-Api-Key", "s")
                       .set_header("X-Trace", "t")
                       .set_header("Accept", "a/b");
    RedirectOptions options;
    options.headers_to_other_origins = {"x-trace"};

    REQUIRE(talk.client({redirect(options)}).send(request)->status == 200);

    CHECK(talk.sent(1).headers() == Headers{{"X-Trace", "t"}, {"Accept", "a/b"}});
  }
}

TEST_CASE("headers follow within the origin, however it is spelt") {
  Conversation talk;
  talk.network->say(redirect_to(302, "HTTP://X:80/b")).say(Response(200));
  auto request = Request::get("http://x/").set_header("Authorization", "Bearer s");
  REQUIRE(talk.client({redirect()}).send(request)->status == 200);
  CHECK(talk.sent(1).headers().get("Authorization") == "Bearer s");
}

TEST_CASE("a body goes to another origin only where that is asked for") {
  Conversation talk;
  talk.network->say(redirect_to(307, "http://y/")).say(Response(200));
  const auto refused = talk.client({redirect()}).post("http://x/", "data");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::Protocol);
  CHECK(talk.sends() == 1);

  Conversation asked;
  asked.network->say(redirect_to(307, "http://y/")).say(Response(200));
  RedirectOptions options;
  options.allow_body_to_other_origin = true;
  REQUIRE(asked.client({redirect(options)}).post("http://x/", "data")->status == 200);
  CHECK(*asked.sent(1).body().bytes() == "data");
}

TEST_CASE("a Location that is no http URL ends the call, and nothing is sent there") {
  for (const char* location : {"file:///etc/passwd", "ftp://y/", "http://", "//", "http://a b/"}) {
    CAPTURE(location);
    Conversation talk;
    talk.network->say(redirect_to(302, location)).say(Response(200));
    const auto outcome = talk.client({redirect()}).get("http://x/");
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Protocol);
    CHECK(talk.sends() == 1);
  }
}

TEST_CASE("each hop is retried by itself, and the history counts through") {
  Conversation talk;
  talk.network->say(Response(503))
      .say(redirect_to(302, "/b"))
      .say(Response(503))
      .say(Response(200));
  const auto outcome = talk.client({redirect(), retry()}).get("http://x/a");
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  REQUIRE(outcome->history.attempts.size() == 4);
  CHECK(outcome->history.attempts[3].number == 4);
  CHECK(talk.heard->lines()[3] == "attempt 2");
}

// urllib3's test_backoff_reset_after_redirect, curl's test 3010.
TEST_CASE("a hop begins with the first wait again, and hears only what its own answers say") {
  auto moved = redirect_to(301, "/b");
  moved.headers.add("Retry-After", "2");
  Conversation talk;
  talk.network->say(Response(503))
      .say(Response(503))
      .say(std::move(moved))
      .say(Response(503))
      .say(Response(503))
      .say(Response(200));
  const auto outcome = talk.client({redirect(), retry(steady_policy())}).get("http://x/a");
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  std::vector<Time> sends;
  for (const auto& seen : talk.network->requests()) sends.push_back(seen.when);
  CHECK(sends == std::vector<Time>{Time(0s), Time(1s), Time(3s), Time(3s), Time(4s), Time(6s)});
  CHECK_FALSE(outcome->history.attempts[3].server_delay);
}

TEST_CASE("an empty Location is not followed") {
  Conversation talk;
  talk.network->say(redirect_to(302, ""));
  const auto outcome = talk.client({redirect()}).get("http://x.test/a");
  REQUIRE(outcome);
  CHECK(outcome->status == 302);
  CHECK(talk.sends() == 1);
}

TEST_CASE("name and password in the URL stay for the same origin, and for no other") {
  Conversation talk;
  talk.network->say(redirect_to(302, "/x?q=@"))
      .say(redirect_to(302, "http://other.test/y"))
      .say(Response(200));
  REQUIRE(talk.client({redirect()}).get("http://ann:p%40ss@x.test/a"));
  CHECK(talk.sent(1).url() == "http://ann:p%40ss@x.test/x?q=@");
  CHECK(talk.sent(2).url() == "http://other.test/y");
}

// The coroutine of the call follows where redirect() is the first of the chain, else redirect()
// itself.
TEST_CASE("redirects are the same where another middleware stands above") {
  const auto told = [](std::vector<MiddlewarePtr> chain, bool endless) {
    Conversation talk;
    for (int hop = 0; hop < 3; ++hop) talk.network->say(redirect_to(307, "/next"));
    if (!endless) talk.network->say(Response(404));
    const auto outcome = talk.client(std::move(chain)).send(Request::put("http://x/", "data"));
    std::string text = outcome ? std::to_string(outcome->status) : outcome.error().message;
    for (std::size_t i = 0; i < talk.sends(); ++i) {
      text += "; " + talk.sent(i).method() + " " + talk.sent(i).url() + " " +
              (talk.sent(i).body().present() ? "with" : "without");
    }
    return text;
  };
  RedirectOptions two;
  two.limit = 2;
  const auto looks = on_outcome("looks", [](const Request&, Outcome&, Call&) {});
  for (const bool endless : {false, true}) {
    const auto options = endless ? two : RedirectOptions();
    const auto first = told({redirect(options)}, endless);
    CHECK(first.find("PUT http://x/next with") != std::string::npos);
    CHECK(first == told({looks, redirect(options)}, endless));
    CHECK(first == told({redirect(options), looks}, endless));
  }
}

namespace {

// A policy file in which the path /other has another header for the key.
PolicySet two_keys() {
  return parse_policies(R"({"version": 1,
    "default": {"idempotency_key": "Key"},
    "endpoints": [
      {"match": {"path": "/other"}, "policy": {"idempotency_key": "Other-Key"}},
      {"match": {"path": "/none"}, "policy": "standard"}]})",
                        "policy.json")
      .value();
}

}  // namespace

TEST_CASE("a call has one idempotency key, over retries and redirects that keep the method") {
  Conversation talk;
  talk.network->say(Response(503))
      .say(redirect_to(307, "/b"))
      .say(redirect_to(308, "/none"))
      .say(redirect_to(307, "/other"))
      .say(Response(503))
      .say(Response(200));
  REQUIRE(talk.client({redirect(), retry(two_keys())}).post("http://x/a", "data")->status == 200);

  REQUIRE(talk.sends() == 6);
  const auto key = std::string(talk.sent(0).headers()["Key"]);
  CHECK(key.size() == 36);
  CHECK(talk.sent(1).headers()["Key"] == key);
  CHECK(talk.sent(2).headers()["Key"] == key);
  CHECK_FALSE(talk.sent(3).headers().contains("Key"));
  CHECK(talk.sent(4).headers()["Other-Key"] == key);
  CHECK_FALSE(talk.sent(4).headers().contains("Key"));
  CHECK(talk.sent(5).headers()["Other-Key"] == key);
}

TEST_CASE("a middleware that changes the body of each hop does not change the key") {
  Conversation talk;
  talk.network->say(redirect_to(307, "/b")).say(Response(200));
  auto wrap = on_request("wrap", [](Request& request, Call&) { request.set_body("wrapped"); });
  REQUIRE(talk.client({redirect(), wrap, retry(two_keys())}).post("http://x/a", "data")->status ==
          200);
  CHECK(talk.sent(1).headers()["Key"] == talk.sent(0).headers()["Key"]);
}

TEST_CASE("a redirect that becomes GET has no idempotency key, whoever has set it") {
  for (const auto* own : {"", "Key", "Idempotency-Key"}) {
    CAPTURE(own);
    Conversation talk;
    talk.network->say(redirect_to(303, "/b")).say(redirect_to(307, "/other")).say(Response(200));
    auto request = Request::post("http://x/a", "data");
    if (*own != '\0') request.set_header(own, "mine");
    REQUIRE(talk.client({redirect(), retry(two_keys())}).send(request)->status == 200);

    REQUIRE(talk.sends() == 3);
    CHECK(talk.sent(0).headers().contains("Key"));
    for (const auto* name : {"Key", "Other-Key", "Idempotency-Key"}) {
      CHECK_FALSE(talk.sent(1).headers().contains(name));
      CHECK_FALSE(talk.sent(2).headers().contains(name));
    }
  }
}

TEST_CASE("a generated key goes to another origin with the body, a key of the user does not") {
  for (const bool own : {false, true}) {
    CAPTURE(own);
    Conversation talk;
    talk.network->say(redirect_to(307, "http://y/b")).say(Response(200));
    RedirectOptions options;
    options.allow_body_to_other_origin = true;
    auto request = Request::post("http://x/a", "data");
    if (own) request.set_header("Key", "mine");
    REQUIRE(talk.client({redirect(options), retry(two_keys())}).send(request)->status == 200);
    const auto second = talk.sent(1);
    CHECK(second.headers().contains("Key"));
    CHECK((second.headers()["Key"] == talk.sent(0).headers()["Key"]) == !own);
  }
}

TEST_CASE("a middleware that sends again keeps the key, and another request of it has its own") {
  Conversation talk;
  talk.network->say(Response(200)).say(Response(401)).say(Response(200));
  auto login = middleware("login", [](Request request, Call& call, Next next) -> Task<Outcome> {
    auto first = Request::post("http://x/a", "login");
    Outcome in = co_await next(std::move(first), call);
    Outcome outcome = co_await next(request, call);
    if (!outcome || outcome->status != 401) co_return outcome;
    Outcome again = co_await next(request, call);
    co_return again;
  });
  REQUIRE(talk.client({login, retry(two_keys())}).post("http://x/a", "data")->status == 200);
  REQUIRE(talk.sends() == 3);
  CHECK(talk.sent(0).headers()["Key"] != talk.sent(1).headers()["Key"]);
  CHECK(talk.sent(2).headers()["Key"] == talk.sent(1).headers()["Key"]);
}

TEST_CASE("a key is not taken along by the redirect of another request of the call") {
  Conversation talk;
  talk.network->say(Response(200)).say(redirect_to(307, "/b")).say(Response(200));
  auto login = middleware("login", [](Request request, Call& call, Next next) -> Task<Outcome> {
    auto first = Request::post("http://x/login", "login");
    Outcome in = co_await next(std::move(first), call);
    Outcome outcome = co_await next(request, call);
    co_return outcome;
  });
  auto client = talk.client({login, redirect(), retry(two_keys())});
  REQUIRE(client.post("http://x/none", "data")->status == 200);
  REQUIRE(talk.sends() == 3);
  CHECK_FALSE(talk.sent(1).headers().contains("Key"));
  CHECK(talk.sent(2).headers().contains("Key"));
  CHECK(talk.sent(2).headers()["Key"] != talk.sent(0).headers()["Key"]);
}
