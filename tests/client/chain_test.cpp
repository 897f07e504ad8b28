#include "conversation.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

MiddlewarePtr noting(std::string name, std::vector<std::string>& notes) {
  return middleware(name, [name, &notes](Request request, Call& call, Next next) -> Task<Outcome> {
    notes.push_back(name + " in");
    Outcome outcome = co_await next(std::move(request), call);
    notes.push_back(name + " out");
    co_return outcome;
  });
}

MiddlewarePtr throwing(std::string name, bool after) {
  return middleware(std::move(name),
                    [after](Request request, Call& call, Next next) -> Task<Outcome> {
                      if (!after) throw std::runtime_error("before");
                      Outcome outcome = co_await next(std::move(request), call);
                      throw std::runtime_error("after");
                      co_return outcome;
                    });
}

// Has nothing to do, but for GET, about which it throws.
class Unsure final : public Middleware {
 public:
  [[nodiscard]] std::string_view name() const override { return "unsure"; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    if (request.method() == "GET") throw std::runtime_error("it is odd");
    return next(std::move(request), call);
  }
};

}  // namespace

TEST_CASE("the chain reads outside-in") {
  Conversation talk;
  talk.network->say(Response(200));
  std::vector<std::string> notes;
  auto client = talk.client({noting("a", notes), noting("b", notes)});

  CHECK(client.get("http://x/")->status == 200);

  CHECK(notes == std::vector<std::string>{"a in", "b in", "b out", "a out"});
}

TEST_CASE("a middleware above retry sees a call, one below it every attempt") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(503)).say(Response(200));
  int calls = 0;
  int attempts = 0;
  auto client = talk.client({on_request("calls", [&](Request&, Call&) { ++calls; }), retry(),
                             on_request("attempts", [&](Request&, Call&) { ++attempts; })});

  CHECK(client.get("http://x/")->status == 200);

  CHECK(calls == 1);
  CHECK(attempts == 3);
}

TEST_CASE("a middleware may answer by itself, and ask several times") {
  Conversation talk;
  talk.network->say(Response(200, "one")).say(Response(200, "two"));
  auto answering = middleware("cache", [](Request request, Call&, Next) -> Task<Outcome> {
    co_return Response(200, "kept: " + request.url());
  });
  auto twice = middleware("twice", [](Request request, Call& call, Next next) -> Task<Outcome> {
    Outcome first = co_await next(request, call);
    Outcome second = co_await next(request, call);
    co_return Response(200, first->body + second->body);
  });

  CHECK(talk.client({answering}).get("http://x/")->body == "kept: http://x/");
  CHECK(talk.sends() == 0);
  CHECK(talk.client({twice}).get("http://x/")->body == "onetwo");
}

TEST_CASE("what a middleware changes in its request nobody outside it sees") {
  Conversation talk;
  talk.network->say(Response(200));
  auto mine = Request::get("http://x/");
  auto client = talk.client({on_request("tag", [](Request& request, Call&) {
    request.set_header("X-Tag", "1").add_query("q", "a b");
  })});

  REQUIRE(client.send(mine));

  CHECK(talk.sent(0).headers().get("X-Tag") == "1");
  CHECK(talk.sent(0).url() == "http://x/?q=a%20b");
  CHECK_FALSE(mine.headers().contains("X-Tag"));
  CHECK(mine.url() == "http://x/");
}

TEST_CASE("a middleware that throws ends the call with its name, and the client lives on") {
  Conversation talk;
  talk.network->say(Response(200));
  std::vector<std::string> notes;
  for (const bool after : {false, true}) {
    auto client = talk.client({noting("outer", notes), throwing("grumpy", after)});
    const auto outcome = client.get("http://x/");
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Internal);
    CHECK(outcome.error().message ==
          std::string("middleware \"grumpy\" threw: ") + (after ? "after" : "before"));
    // What was thrown does not say what was sent.
    const auto sent = after ? Sent::Maybe : Sent::Never;
    CHECK(outcome.error().exchange.sent == sent);
    const auto retried = talk.client({retry(), throwing("grumpy", after)}).get("http://x/");
    REQUIRE_FALSE(retried);
    REQUIRE(retried.error().history.attempts.size() == 1);
    CHECK(retried.error().history.attempts[0].sent == sent);
    CHECK(retried.error().exchange.sent == sent);
  }
  auto unsure = talk.client({noting("outer", notes), std::make_shared<Unsure>()});
  CHECK(unsure.get("http://x/").error().message == "middleware \"unsure\" threw: it is odd");
  CHECK(unsure.send(Request("PUT", "http://x/"))->status == 200);
  // What a middleware passes on is not its own.
  auto passing = talk.client({std::make_shared<Unsure>(), throwing("grumpy", true)});
  CHECK(passing.send(Request("PUT", "http://x/")).error().message ==
        "middleware \"grumpy\" threw: after");
  auto adapted = talk.client({on_request("early", [](Request&, Call&) { throw 7; })});
  CHECK(adapted.get("http://x/").error().message ==
        "middleware \"early\" threw: something that is not a std::exception");
  CHECK(talk.client({}).get("http://x/")->status == 200);
}

TEST_CASE("a chain that cannot work is refused when the client is made") {
  Conversation talk;
  CHECK_THROWS_WITH_AS(talk.client({retry(), retry()}), doctest::Contains("two retry middlewares"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(talk.client({retry(), redirect()}), doctest::Contains("below retry"),
                       std::invalid_argument);
  CHECK_THROWS_AS(talk.client({nullptr}), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(timeout(0s)), std::invalid_argument);
  ClientOptions threadless;
  threadless.middlewares = {};
  threadless.threads = 0;
  CHECK_THROWS_AS(Client{threadless}, std::invalid_argument);
  ClientOptions no_transport;
  no_transport.middlewares = {};
  no_transport.scheduler = talk.clock;
  CHECK_THROWS_WITH_AS(Client{no_transport}, doctest::Contains("or use an EventLoop"),
                       std::invalid_argument);
  ClientOptions no_observer;
  no_observer.middlewares = {};
  no_observer.observers = {nullptr};
  CHECK_THROWS_AS(Client{no_observer}, std::invalid_argument);
}

TEST_CASE("a timeout above retry bounds the call, below it each attempt") {
  Conversation below;
  below.network->say(Response(200, "late"), 3s).say(Response(200, "quick"), 1s);
  const auto second = below.client({retry(), timeout(2s)}).get("http://x/");
  REQUIRE(second);
  CHECK(second->body == "quick");
  CHECK(second->history.attempts[0].error == Errc::Timeout);
  CHECK(second->history.attempts[0].duration == 2s);

  Conversation above;
  above.network->say(Response(200, "late"), 3s);
  const auto none = above.client({timeout(2s), retry()}).get("http://x/");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Errc::Timeout);
  CHECK(above.clock->now() == Time(2s));
  CHECK(above.sends() == 1);
}

TEST_CASE("a client without a middleware retry tells of its one attempt") {
  Conversation talk;
  talk.network->say(Response(404));
  const auto outcome = talk.client({}).get("http://x/");
  REQUIRE(outcome);
  REQUIRE(outcome->history.attempts.size() == 1);
  CHECK(outcome->history.attempts[0].status == 404);
  CHECK(outcome->history.attempts[0].sent == Sent::Answered);
  CHECK(outcome->history.stop_reason == Reason::NotRetryable);
}

TEST_CASE("default headers fill in what is missing, at the origin of the call only") {
  Conversation talk;
  talk.network->say(redirect_to(302, "http://y/")).say(Response(200));
  auto client = talk.client({redirect(), default_headers({{"X-Key", "k"}, {"Accept", "a/b"}})});

  REQUIRE(client.send(Request::get("http://x/").set_header("accept", "c/d")));

  CHECK(talk.sent(0).headers() == Headers{{"accept", "c/d"}, {"X-Key", "k"}});
  CHECK(talk.sent(1).url() == "http://y/");
  CHECK_FALSE(talk.sent(1).headers().contains("X-Key"));
}
