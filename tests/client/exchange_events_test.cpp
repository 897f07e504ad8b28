// What an Observer is told of each exchange: which, for which attempt, as it was sent, and who
// answered.
#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// "1 of attempt 1: GET http://x/a [t1] -> 401"
class Exchanges final : public Observer {
 public:
  void exchange_started(const Call& call, const Request& request, int number) noexcept override {
    lines.push_back("begin " + std::to_string(number) + " of " + std::to_string(call.attempt()));
    last = request;
  }
  void exchange_ended(const Call& call, const Request& request, int number,
                      const Outcome& outcome) noexcept override {
    CHECK(request.url() == last->url());
    const auto token = request.headers().get("Authorization").value_or("none");
    lines.push_back(
        "end " + std::to_string(number) + " of " + std::to_string(call.attempt()) + ": " +
        request.url() + " " + std::string(token) + " -> " +
        (outcome ? std::to_string(outcome->status) : std::string(to_string(outcome.error().code))));
    peer = exchange_of(outcome).peer;
  }
  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    lines.push_back("judged " + std::to_string(attempt.number));
  }
  std::vector<std::string> lines;
  std::optional<Request> last;
  Peer peer;
};

// Sends once more, with another token, after a 401.
Task<Outcome> with_token(Request request, Call& call, Next next) {
  Request first = request;
  first.set_header("Authorization", "t1");
  Outcome outcome = co_await next(std::move(first), call);
  if (!outcome || outcome->status != 401) co_return outcome;
  request.set_header("Authorization", "t2");
  Outcome again = co_await next(std::move(request), call);
  co_return again;
}

}  // namespace

TEST_CASE("an observer is told of every exchange: retries, redirects, and those of a middleware") {
  Conversation talk;
  const auto seen = std::make_shared<Exchanges>();
  ClientOptions options;
  options.middlewares = {redirect(), retry(steady_policy()), middleware("token", with_token)};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {seen};
  talk.network->say(Response(503))
      .say(redirect_to(307, "/b"))
      .say(Response(401))
      .say(Response(200));
  REQUIRE(Client(options).get("http://x/a")->status == 200);
  CHECK(seen->lines ==
        std::vector<std::string>{"begin 1 of 1", "end 1 of 1: http://x/a t1 -> 503", "judged 1",
                                 "begin 2 of 2", "end 2 of 2: http://x/a t1 -> 307", "judged 2",
                                 "begin 3 of 3", "end 3 of 3: http://x/b t1 -> 401", "begin 4 of 3",
                                 "end 4 of 3: http://x/b t2 -> 200", "judged 3"});
}

TEST_CASE("a transport that throws ends its exchange with an error") {
  class Throws final : public Transport {
    Task<Outcome> send(Request /*request*/, Call& /*call*/) override {
      throw std::runtime_error("no");
    }
  };
  Conversation talk;
  const auto seen = std::make_shared<Exchanges>();
  ClientOptions options;
  options.middlewares = {};
  options.scheduler = talk.clock;
  options.transport = std::make_shared<Throws>();
  options.observers = {seen};
  REQUIRE_FALSE(Client(options).get("http://x/a"));
  CHECK(seen->lines ==
        std::vector<std::string>{"begin 1 of 0", "end 1 of 0: http://x/a none -> internal"});
}

TEST_CASE("an exchange tells its peer where there is an observer") {
  FaultServer server({{200, "ok"}});
  const auto seen = std::make_shared<Exchanges>();
  ClientOptions options;
  options.observers = {seen};
  const auto outcome = Client(options).get(server.url());
  REQUIRE(outcome);
  CHECK(seen->peer.address() == "127.0.0.1");
  CHECK(outcome->exchange.peer.address() == "127.0.0.1");
  CHECK(":" + std::to_string(seen->peer.port) + "/" ==
        server.url("/").substr(server.url("/").rfind(':')));
  CHECK(Client().get(server.url())->exchange.peer.address().empty());
}

TEST_CASE("an endpoint tells the path that it matches") {
  const auto policies = parse_policies(R"({"version": 1, "endpoints": [
    {"name": "items", "match": {"host": "x", "path": "/items/{id}/**"}, "policy": {}}]})",
                                       "policy.json");
  REQUIRE(policies);
  CHECK(policies->find("GET", *Url::parse("http://x/items/7")).path == "/items/{id}/**");
  CHECK(policies->find("GET", *Url::parse("http://y/items/7")).path.empty());
}
