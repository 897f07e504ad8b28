// Polling a URL that a pending response names: what is sent there, and where nothing is sent.
#include "conversation.hpp"
#include "policies.hpp"

#include "lib/core/middleware/send_again.hpp"

#include <httpretry/client/report.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// A 202 is pending, and names the URL in one of three headers.
RetryPolicy polling(std::vector<std::string> origins = {}) {
  auto policy = steady_policy();
  auto& pending = policy.retry_on.pending.emplace();
  pending.statuses = {202};
  pending.backoff.initial = 10s;
  pending.url_from = {"Azure-AsyncOperation", "Operation-Location", "Location"};
  pending.origins = std::move(origins);
  return policy;
}

Response accepted(std::string_view url, std::string_view header = "Location") {
  Response response(202);
  response.headers.add(header, url);
  return response;
}

Request order() {
  return Request::post("https://x.test/v1/orders?dry=no", "data")
      .set_header("Content-Type", "text/plain")
      .set_header("Authorization", "Bearer secret")
      .set_header("X-Api-Key", "secret")
      .set_header("Accept", "a/b");
}

std::vector<std::string> sent_by(const Conversation& talk) {
  std::vector<std::string> lines;
  for (const auto& seen : talk.network->requests()) {
    lines.push_back(seen.request.method() + " " + seen.request.url());
  }
  return lines;
}

}  // namespace

TEST_CASE("an accepted POST is polled by GET, where the response says, with the waits of polls") {
  Conversation talk;
  talk.network->say(accepted("/operations/7?token=t")).say(accepted("")).say(Response(200));
  const auto outcome = talk.client({retry(polling())}).send(order());
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  REQUIRE(sent_by(talk) == std::vector<std::string>{"POST https://x.test/v1/orders?dry=no",
                                                    "GET https://x.test/operations/7?token=t",
                                                    "GET https://x.test/operations/7?token=t"});
  CHECK_FALSE(talk.sent(1).body().present());
  CHECK(talk.sent(1).headers() ==
        Headers{{"Authorization", "Bearer secret"}, {"X-Api-Key", "secret"}, {"Accept", "a/b"}});
  CHECK(talk.network->requests()[1].when == Time(10s));
  CHECK(talk.network->requests()[2].when == Time(20s));
}

TEST_CASE("the first header of the list counts, and each pending response may name another URL") {
  Conversation talk;
  auto first = accepted("https://x.test/location");
  first.headers.add("azure-asyncoperation", "../status/1");
  talk.network->say(std::move(first))
      .say(accepted("2", "Operation-Location"))
      .say(accepted("3"))
      .say(Response(202))
      .say(Response(200));
  REQUIRE(talk.client({retry(polling())}).send(order()));
  CHECK(sent_by(talk) ==
        std::vector<std::string>{"POST https://x.test/v1/orders?dry=no",
                                 "GET https://x.test/status/1", "GET https://x.test/status/2",
                                 "GET https://x.test/status/3", "GET https://x.test/status/3"});
}

TEST_CASE("a poll is safe by itself: it is retried whatever `repeat` says of the request") {
  for (const auto repeat : {Repeat::Safe, Repeat::Always, Repeat::Never, Repeat::Refused}) {
    CAPTURE(static_cast<int>(repeat));
    Conversation talk;
    talk.network->say(accepted("/7"))
        .say(Response(500))
        .say(error_of(Errc::Receive))
        .say(Response(202))
        .say(Response(200));
    auto policy = polling();
    policy.repeat = repeat;
    auto request = order();
    request.edit_options().repeatable = false;
    const auto outcome = talk.client({retry(policy)}).send(request);
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
    CHECK(talk.sends() == 5);
    for (std::size_t i = 1; i < 5; ++i) CHECK(talk.sent(i).method() == "GET");
  }
}

TEST_CASE("a poll on a connection that was closed is sent again at once, whatever `repeat` says") {
  Conversation talk;
  auto stale = error_of(Errc::Receive);
  stale.exchange.sent = Sent::Maybe;
  stale.exchange.stale_connection = true;
  talk.network->say(accepted("/7")).say(std::move(stale)).say(Response(200));
  auto policy = polling();
  policy.repeat = Repeat::Never;
  const auto outcome = talk.client({retry(policy)}).send(order());
  REQUIRE(outcome);
  REQUIRE(talk.sends() == 3);
  CHECK(outcome->history.attempts[1].rule == "stale connection");
  CHECK(talk.network->requests()[2].when == Time(10s));
}

TEST_CASE("without a header that names a URL, a POST is not repeated and a GET is") {
  Conversation talk;
  talk.network->say(Response(202)).say(Response(200));
  const auto post = talk.client({retry(polling())}).send(order());
  CHECK(history_of(post).stop_reason == Reason::UnsafeToRepeat);
  CHECK(talk.sends() == 1);

  Conversation again;
  again.network->say(accepted("/7", "Content-Location")).say(Response(200));
  CHECK(again.client({retry(polling())}).get("https://x.test/a")->status == 200);
  CHECK(again.sent(1).url() == "https://x.test/a");
}

TEST_CASE("only a pending response names a URL to poll") {
  Conversation talk;
  auto created = accepted("/7");
  created.status = 201;
  auto failed = accepted("/7");
  failed.status = 503;
  talk.network->say(std::move(failed)).say(std::move(created));
  CHECK(talk.client({retry(polling())}).get("https://x.test/a")->status == 201);
  CHECK(talk.sent(1).url() == "https://x.test/a");

  Conversation off;
  off.network->say(accepted("/7"));
  auto policy = polling();
  policy.retry_on.pending->url_from.clear();
  CHECK(history_of(off.client({retry(policy)}).send(order())).stop_reason ==
        Reason::UnsafeToRepeat);
}

TEST_CASE("a body that can be read only once does not keep us from polling") {
  Conversation talk;
  talk.network->say(accepted("/7")).say(Response(503)).say(Response(200));
  auto request = order();
  request.set_body(Body::once([](std::span<char>) { return std::size_t{0}; }));
  CHECK(talk.client({retry(polling())}).send(request)->status == 200);
  CHECK(talk.sends() == 3);
}

TEST_CASE("headers of the request's body, conditions and keys are not those of a poll") {
  Conversation talk;
  talk.network->say(accepted("/7")).say(Response(200));
  auto policy = polling();
  policy.idempotency_key = "X-Key";
  auto request = order();
  for (const auto* name : {"Content-Encoding", "Content-MD5", "If-Match", "If-None-Match", "Range",
                           "Idempotency-Key", "Expect", "X-Key"}) {
    request.set_header(name, "v");
  }
  REQUIRE(talk.client({retry(policy)}).send(request));
  CHECK(talk.sent(0).headers().get("X-Key") == "v");
  CHECK(talk.sent(1).headers() ==
        Headers{{"Authorization", "Bearer secret"}, {"X-Api-Key", "secret"}, {"Accept", "a/b"}});
}

TEST_CASE("where nothing is sent ends the call, with an error that says which header it was") {
  struct Row {
    const char* url;
    const char* message;
    int curl_code;
  };
  const std::vector<Row> rows{
      {"https://y.test/7",
       "the Location to poll is at https://y.test, but the request was to https://x.test; to allow "
       "it, list it in retry_on.pending.origins",
       0},
      {"//x.test:8443/7", "the Location to poll is at https://x.test:8443, but", 0},
      {"https://listed.test.evil/7", "the Location to poll is at https://listed.test.evil, but", 0},
      {"http://x.test/7",
       "the Location to poll is http://x.test/7: a poll must not change from https to http", 1},
      {"http://listed.test/7?t=secret", "the Location to poll is http://listed.test/7: a poll", 1},
      {"file:///etc/passwd", "the Location to poll is ", 3},
      {"ftp://x.test/", "the Location to poll is ", 3},
      {"https://", "the Location to poll is ", 3},
  };
  for (const auto& row : rows) {
    CAPTURE(row.url);
    Conversation talk;
    talk.network->say(accepted(row.url)).say(Response(200));
    const auto outcome =
        talk.client({retry(polling({"https://listed.test", "http://listed.test"}))}).send(order());
    REQUIRE_FALSE(outcome);
    const auto& error = outcome.error();
    CAPTURE(error.message);
    CHECK(error.code == Errc::Protocol);
    CHECK(error.permanent);
    CHECK(error.status == 202);
    CHECK(error.curl_code == row.curl_code);
    CHECK(error.message.starts_with(row.message));
    CHECK(error.message.find("secret") == std::string::npos);
    CHECK(error.history.stop_reason == Reason::NotRetryable);
    REQUIRE(error.history.attempts.size() == 1);
    CHECK(error.history.attempts[0].status == 202);
    CHECK(error.history.attempts[0].error_message == error.message);
    CHECK(talk.sends() == 1);
  }
}

TEST_CASE("a listed origin is polled without secrets, and they do not come back") {
  Conversation talk;
  talk.network->say(accepted("https://eu.status.test/7"))
      .say(accepted("https://x.test/8"))
      .say(Response(200));
  auto request = order();
  request.edit_options().credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  REQUIRE(talk.client({retry(polling({"https://*.status.test"}))}).send(request));
  CHECK(talk.sent(0).options().credentials.has_value());
  for (const std::size_t poll : {1U, 2U}) {
    CHECK(talk.sent(poll).headers() == Headers{{"Accept", "a/b"}});
    CHECK_FALSE(talk.sent(poll).options().credentials.has_value());
  }
  CHECK(sent_by(talk)[1] == "GET https://eu.status.test/7");
  CHECK(sent_by(talk)[2] == "GET https://x.test/8");
}

TEST_CASE("name and password of the URL stay for polls of the same origin, and for no other") {
  Conversation talk;
  talk.network->say(accepted("/7")).say(accepted("https://y.test/8")).say(Response(200));
  REQUIRE(talk.client({retry(polling({"https://y.test"}))}).get("https://ann:pass@x.test/a"));
  CHECK(sent_by(talk) == std::vector<std::string>{"GET https://ann:pass@x.test/a",
                                                  "GET https://ann:pass@x.test/7",
                                                  "GET https://y.test/8"});
}

TEST_CASE("polls follow the policy of the entry that asked for them, and its budget") {
  const auto policies = parse_policies(R"({"version": 1, "default": {"max_attempts": 1},
      "endpoints": [{"name": "orders", "match": {"path": "/v1/orders"}, "policy": {
        "max_attempts": 3, "max_elapsed_time": "1m", "backoff": {"kind": "none"},
        "budget": {"kind": "tokens", "capacity": 100, "retry_cost": 10, "scope": "endpoint"},
        "retry_on": {"pending": {"statuses": [202], "url_from": "Location",
                                 "origins": ["https://y.test"]}}}}]})",
                                       "p.json")
                            .value();
  Conversation talk;
  talk.network->say(accepted("https://y.test/7")).say(Response(503)).say(Response(503));
  talk.network->say(Response(503));
  const auto outcome = talk.client({retry(policies)}).send(order());
  CHECK(history_of(outcome).stop_reason == Reason::AttemptsExhausted);
  const auto& attempts = history_of(outcome).attempts;
  REQUIRE(attempts.size() == 4);  // the POST, and three polls that failed
  CHECK(attempts[1].budget_left == 90);
  for (const auto& attempt : attempts) CHECK(attempt.policy->endpoint == "orders");
}

TEST_CASE("pending.max and max_elapsed_time end polling as ever") {
  Conversation talk;
  talk.network->say(accepted("/7"));
  auto policy = polling();
  policy.retry_on.pending->max = 3;
  auto outcome = talk.client({retry(policy)}).send(order());
  CHECK(history_of(outcome).detail == "pending.max 3 reached");
  CHECK(talk.sends() == 3);

  Conversation slow;
  slow.network->say(accepted("/7"));
  outcome = slow.client({retry(polling())}).send(order());
  CHECK(history_of(outcome).stop_reason == Reason::ElapsedExhausted);
}

TEST_CASE("the history and the report say which attempts polled which URL, without its query") {
  Conversation talk;
  talk.network->say(accepted("/7?sig=secret"))
      .say(Response(503))
      .say(accepted("/8"))
      .say(Response(200));
  const auto outcome = talk.client({retry(polling())}).send(order());
  REQUIRE(outcome);
  const auto& history = outcome->history;
  REQUIRE(history.polled.size() == 2);
  CHECK(history.polled_by(history.attempts[0]) == nullptr);
  for (const std::size_t poll : {1U, 2U}) {
    CHECK(history.polled_by(history.attempts[poll])->url == "https://x.test/7");
  }
  CHECK(history.polled_by(history.attempts[3])->url == "https://x.test/8");

  CHECK(describe(outcome) ==
        "succeeded after 4 attempts in 21.0 s: 202, 503, 202, 200; polled https://x.test/8");

  const auto report = report_json(order(), outcome);
  CHECK(report.find(R"("polled_url": "https://x.test/7")") != std::string::npos);
  CHECK(report.find(R"("polled_url": "https://x.test/8")") != std::string::npos);
  CHECK(report.find("secret") == std::string::npos);
}

TEST_CASE("a redirect of a poll is followed from there, and never with the first request") {
  for (const int status : {302, 307}) {
    CAPTURE(status);
    Conversation talk;
    talk.network->say(accepted("https://y.test/operations/7"))
        .say(redirect_to(status, "../results/7"))
        .say(Response(200));
    const auto outcome =
        talk.client({redirect(), retry(polling({"https://y.test"}))}).send(order());
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
    CHECK(sent_by(talk)[2] == "GET https://y.test/results/7");
    CHECK_FALSE(talk.sent(2).body().present());
    CHECK(talk.sent(2).headers() == Headers{{"Accept", "a/b"}});
  }
}

TEST_CASE("a redirect of the request itself is followed as ever, and its poll is one of the hop") {
  Conversation talk;
  talk.network->say(redirect_to(307, "/v2/orders"))
      .say(accepted("7"))
      .say(redirect_to(303, "/done"))
      .say(redirect_to(307, "/end"))
      .say(Response(200));
  REQUIRE(talk.client({redirect(), retry(polling())}).send(order()));
  CHECK(sent_by(talk) ==
        std::vector<std::string>{"POST https://x.test/v1/orders?dry=no",
                                 "POST https://x.test/v2/orders", "GET https://x.test/v2/7",
                                 "GET https://x.test/done", "GET https://x.test/end"});
}

TEST_CASE("a URL is resolved where the response came from, if a middleware below went elsewhere") {
  Conversation talk;
  const auto mirror = on_request("mirror", [&](Request& request, Call&) {
    if (talk.sends() == 0) request.set_url("https://y.test/b/c").remove_header("X-Api-Key");
  });
  const auto get = Request::get("https://x.test/a").set_header("X-Api-Key", "secret");
  talk.network->say(accepted("7")).say(Response(200));
  REQUIRE(talk.client({retry(polling({"https://y.test"})), mirror}).send(get));
  CHECK(sent_by(talk)[1] == "GET https://y.test/b/7");
  CHECK(talk.sent(1).headers().empty());
}

TEST_CASE("a poll is no part of an upload that is to be resumed") {
  Conversation talk;
  talk.network->say(Response(503)).say(accepted("/7")).say(Response(503)).say(Response(200));
  int resumed = 0;
  auto request = order();
  request.edit_options().repeatable = true;
  request.edit_options().context.set(SendAgain{[&](Request attempt, Call& call, Next next) {
    ++resumed;
    return next(std::move(attempt), call);
  }});
  CHECK(talk.client({retry(polling())}).send(request)->status == 200);
  CHECK(talk.sends() == 4);
  CHECK(resumed == 1);
}

TEST_CASE("a token that is refused to a poll is renewed for the poll alone") {
  for (const bool above : {false, true}) {
    CAPTURE(above);
    int fetched = 0;
    const auto token = bearer([&](Call&) -> Task<Result<BearerToken>> {
      co_return BearerToken("token" + std::to_string(++fetched));
    });
    // The URL to poll is none that the policy is for.
    PolicySet policies = parse_policies(R"({"version": 1,
      "policies": {"operations": {"retry_on": {"pending": {"statuses": [202], "url_from": ["Location"],
                   "backoff": {"kind": "constant", "interval": "10s"}}}}},
      "endpoints": [{"name": "orders", "match": {"host": "x.test", "path": "/v1/orders"},
                     "policy": "operations"}]})",
                                        "policies.json")
                             .value();
    Conversation talk;
    talk.network->say(accepted("/7")).say(Response(401)).say(accepted("/8")).say(Response(200));
    auto client =
        above ? talk.client({token, retry(policies)}) : talk.client({retry(policies), token});
    const auto outcome = client.send(Request::post("https://x.test/v1/orders", "data"));
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
    CHECK(sent_by(talk) == std::vector<std::string>{"POST https://x.test/v1/orders",
                                                    "GET https://x.test/7", "GET https://x.test/7",
                                                    "GET https://x.test/8"});
    CHECK(talk.sent(1).headers().get("Authorization") == "Bearer token1");
    CHECK(talk.sent(2).headers().get("Authorization") == "Bearer token2");
    CHECK(talk.sent(3).headers().get("Authorization") == "Bearer token2");
    const auto& history = outcome->history;
    for (const auto& attempt : history.attempts) CHECK(attempt.policy->endpoint == "orders");
    REQUIRE(history.polled.size() == 2);
    CHECK(history.polled[0].url == "https://x.test/7");
    CHECK(history.polled[1].url == "https://x.test/8");
  }
}

TEST_CASE("a poll that is refused again, or at a listed origin, is not repeated for a token") {
  int fetched = 0;
  const auto token = bearer([&](Call&) -> Task<Result<BearerToken>> {
    co_return BearerToken("token" + std::to_string(++fetched));
  });
  const auto request = Request::post("https://x.test/v1/orders", "data");
  Conversation twice;
  twice.network->say(accepted("/7")).say(Response(401)).say(Response(401)).say(Response(200));
  CHECK(twice.client({token, retry(polling())}).send(request)->status == 401);
  CHECK(twice.sends() == 3);

  Conversation redirected;
  redirected.network->say(accepted("/7")).say(redirect_to(302, "/8")).say(Response(401));
  CHECK(redirected.client({token, redirect(), retry(polling())}).send(request)->status == 401);
  CHECK(redirected.sends() == 3);

  Conversation elsewhere;
  elsewhere.network->say(accepted("https://y.test/7")).say(Response(401)).say(Response(200));
  CHECK(elsewhere.client({token, retry(polling({"https://y.test"}))}).send(request)->status == 401);
  CHECK(elsewhere.sends() == 2);
  CHECK_FALSE(elsewhere.sent(1).headers().contains("Authorization"));
}

TEST_CASE("a bearer token and default headers do not go to a listed origin") {
  Conversation talk;
  talk.network->say(accepted("https://y.test/7")).say(Response(200));
  REQUIRE(talk.client({retry(polling({"https://y.test"})), bearer("secret"),
                       default_headers({{"X-Api-Key", "secret"}})})
              .send(Request::post("https://x.test/", "data")));
  CHECK(talk.sent(0).headers().size() == 2);
  CHECK(talk.sent(1).headers().empty());
}

TEST_CASE("a rule of error_codes that says pending names a URL, too") {
  Conversation talk;
  auto policy = polling();
  auto& pending = *policy.retry_on.pending;
  pending.statuses = {200};
  pending.json = "/status";
  pending.in = {"Running"};
  ErrorRule begun;
  begun.status = StatusSet{202};
  begun.source = ErrorRule::Source::Header;
  begun.selector = "Location";
  begun.as = Class::Pending;
  policy.retry_on.error_codes.insert(policy.retry_on.error_codes.begin(), begun);
  Response running(200);
  running.body = R"({"status": "Running"})";
  Response done(200);
  done.body = R"({"status": "Succeeded"})";
  talk.network->say(accepted("/7")).say(running).say(done);
  const auto outcome = talk.client({retry(policy)}).send(order());
  REQUIRE(outcome);
  CHECK(outcome->body == done.body);
  CHECK(talk.sends() == 3);
}

TEST_CASE("observers hear of each poll, and a cancel in the wait names what would have come") {
  struct Listener final : Observer {
    std::stop_source stop;
    std::vector<std::string> lines;
    void attempt_started(const Call&, const Request& request, int number) noexcept override {
      lines.push_back(std::to_string(number) + " " + request.method() + " " + request.url());
    }
    void attempt_ended(const Call&, const Request& request, const Attempt&) noexcept override {
      lines.push_back("end " + request.method());
      if (lines.size() == 4) stop.request_stop();
    }
  };
  Conversation talk;
  const auto listener = std::make_shared<Listener>();
  ClientOptions options;
  options.middlewares = {retry(polling())};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {listener};
  CallOptions canceled;
  canceled.stop = listener->stop.get_token();
  talk.network->say(accepted("/7")).say(accepted("/8?sig=secret")).say(Response(200));

  const auto outcome = Client(options).send(order(), canceled);

  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message == "GET https://x.test/8: canceled while waiting to retry");
  CHECK(listener->lines == std::vector<std::string>{"1 POST https://x.test/v1/orders?dry=no",
                                                    "end POST", "2 GET https://x.test/7",
                                                    "end GET"});
}
