// Tokens: fetched once for all who wait, renewed in time, and for one origin only.
#include "conversation.hpp"

#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Gives "t1", "t2", ... each after `takes`.
struct Issuer {
  std::atomic<int> asked = 0;
  Duration takes = 0ms;
  Duration valid_for = kForever;
  std::optional<Error> fails;

  TokenSource source() {
    return [this](Call& call) { return fetch(call); };
  }
  Task<Result<BearerToken>> fetch(Call& call) {
    const int number = ++asked;
    const auto until = later(call.scheduler().now(), takes);
    const bool waited = co_await call.scheduler().sleep_until(until, call.stop());
    if (!waited) co_return Error(Errc::Canceled, "canceled");
    if (fails) co_return *fails;
    co_return BearerToken("t" + std::to_string(number), valid_for);
  }
};

// Accepts one token and answers 401 to the others.
ScriptedTransport::Respond accepts(std::shared_ptr<std::string> token) {
  return [token](const Request& request, int) {
    const auto sent = request.headers().get("Authorization");
    return Outcome(Response(sent == "Bearer " + *token ? 200 : 401));
  };
}

}  // namespace

TEST_CASE("a token is fetched once, and used until it runs out") {
  Issuer issuer;
  issuer.valid_for = 100s;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  talk.network->say(Response(200));
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(issuer.asked == 1);
  CHECK(talk.sent(1).headers().get("Authorization") == "Bearer t1");

  talk.clock->advance(89s);
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(issuer.asked == 1);
  talk.clock->advance(1s);  // a tenth of its life before the end
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(issuer.asked == 2);
  CHECK(talk.sent(3).headers().get("Authorization") == "Bearer t2");
}

TEST_CASE("a token that lasts for long is renewed 30 seconds before its end") {
  Issuer issuer;
  issuer.valid_for = 1h;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  talk.network->say(Response(200));
  CHECK(client.get("http://api.test/"));
  talk.clock->advance(1h - 30s - 1ns);
  CHECK(client.get("http://api.test/"));
  CHECK(issuer.asked == 1);
  talk.clock->advance(1ns);
  CHECK(client.get("http://api.test/"));
  CHECK(issuer.asked == 2);
}

TEST_CASE("a 401 leads to one new token and one more request, not to two") {
  Issuer issuer;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  const auto good = std::make_shared<std::string>("t1");
  talk.network->say(accepts(good));
  CHECK(client.get("http://api.test/")->status == 200);

  *good = "t2";  // the server forgot the first
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(issuer.asked == 2);
  CHECK(talk.sends() == 3);

  *good = "none";
  CHECK(client.get("http://api.test/")->status == 401);
  CHECK(issuer.asked == 3);
  CHECK(talk.sends() == 5);
}

TEST_CASE("the resend after a 401 is counted in the attempt that it belongs to") {
  using Counts = std::vector<int>;
  const auto counts = [](bool below_retry) {
    Issuer issuer;
    Conversation talk;
    talk.network->say(Response(401)).say(Response(200));
    std::vector<MiddlewarePtr> chain{bearer(issuer.source())};
    chain.insert(below_retry ? chain.begin() : chain.end(), retry());
    Client client = talk.client(std::move(chain));
    const auto outcome = client.get("http://api.test/");
    Counts all;
    for (const auto& attempt : outcome->history.attempts) all.push_back(attempt.wire_sends);
    return all;
  };
  CHECK(counts(/*below_retry=*/true) == Counts{2});
  CHECK(counts(/*below_retry=*/false) == Counts{1, 1});
}

TEST_CASE("a body that is gone is not sent again with a new token") {
  Issuer issuer;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  talk.network->say(Response(401));
  const auto body = Body::once([](std::span<char>) { return std::size_t{0}; });
  CHECK(client.post("http://api.test/", body)->status == 401);
  CHECK(talk.sends() == 1);
}

TEST_CASE("the token does not leave its origin, nor replace what the request brings") {
  Issuer issuer;
  Conversation talk;
  Client client = talk.client({redirect(), bearer(issuer.source())});
  talk.network->say(redirect_to(307, "http://other.test/")).say(Response(200));
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(talk.sent(0).headers().contains("Authorization"));
  CHECK_FALSE(talk.sent(1).headers().contains("Authorization"));

  const auto own = Request::get("http://api.test/").set_header("Authorization", "Basic eA==");
  CHECK(client.send(own)->status == 200);
  CHECK(talk.sent(2).headers().get("Authorization") == "Basic eA==");
}

TEST_CASE("only the listed origins receive the token") {
  Issuer issuer;
  const std::vector<std::string> origins = {"https://api.test", "HTTP://API.test:80/"};
  for (const auto& token : {bearer("t1", origins), bearer(issuer.source(), origins)}) {
    Conversation talk;
    Client client = talk.client({token});
    for (const auto* url : {"http://other.test/", "http://api.test:8080/", "http://api.test/x",
                            "https://api.test/x"}) {
      talk.network->say(Response(200));
      CHECK(client.get(url)->status == 200);
    }
    CHECK_FALSE(talk.sent(0).headers().contains("Authorization"));
    CHECK_FALSE(talk.sent(1).headers().contains("Authorization"));
    CHECK(talk.sent(2).headers().contains("Authorization"));
    CHECK(talk.sent(3).headers().contains("Authorization"));
  }
  for (const auto* wrong : {"api.test", "https://api.test/v1", "https://api.test/?a=b",
                            "https://a@api.test/", "*", ""}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(static_cast<void>(bearer("t1", {wrong})), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(bearer(issuer.source(), {wrong})), std::invalid_argument);
  }
}

TEST_CASE("what keeps the token away is the outcome, and may be retried") {
  Issuer issuer;
  Error refused(Errc::Connect, "connection refused");
  issuer.fails = refused;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  talk.network->say(Response(200));
  const auto outcome = client.get("http://api.test/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Connect);
  CHECK(outcome.error().message == "no bearer token: connection refused");
  CHECK_FALSE(outcome.error().maybe_sent());
  CHECK(talk.sends() == 0);

  issuer.fails.reset();
  CHECK(client.get("http://api.test/")->status == 200);
}

TEST_CASE("a token that cannot stand in a header is no token") {
  Conversation talk;
  Client client = talk.client({bearer(
      [](Call&) -> Task<Result<BearerToken>> { co_return BearerToken("secret\r\nX-Evil: 1"); })});
  talk.network->say(Response(200));
  const auto outcome = client.get("http://api.test/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message.find("secret") == std::string::npos);
  CHECK(talk.sends() == 0);
  CHECK_THROWS_AS(static_cast<void>(bearer(std::string("a\nb"))), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(bearer(TokenSource())), std::invalid_argument);
}

TEST_CASE("all who wait for a token are served by one fetch") {
  Issuer issuer;
  issuer.takes = 10ms;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  talk.network->say(Response(200));
  std::vector<std::future<Outcome>> outcomes;
  for (int i = 0; i < 20; ++i) {
    outcomes.push_back(client.send_async(Request::get("http://api.test/")));
  }
  talk.clock->advance(10ms);
  for (auto& outcome : outcomes) CHECK(outcome.get()->status == 200);
  CHECK(issuer.asked == 1);
}

TEST_CASE("an exception of the fetch ends all who wait for it, as an error does") {
  Conversation talk;
  int fetches = 0;
  const TokenSource throws = [&](Call& call) -> Task<Result<BearerToken>> {
    ++fetches;
    const auto waiting = call.scheduler().sleep_until(later(call.scheduler().now(), 1s), {});
    co_await waiting;
    throw std::runtime_error("boom");
  };
  Client client = talk.client({bearer(throws)});
  std::vector<Error> errors;
  for (int i = 0; i < 3; ++i) {
    client.send_then(Request::get("http://api.test/"),
                     [&](Outcome outcome) { errors.push_back(std::move(outcome).error()); });
  }
  talk.clock->advance(10s);
  CHECK(fetches == 1);
  REQUIRE(errors.size() == 3);
  for (const auto& error : errors) {
    CHECK(error.code == Errc::Internal);
    CHECK(error.message == "no bearer token: middleware \"bearer\" threw: boom");
    CHECK(error.exchange.sent == Sent::Never);
  }
  CHECK(talk.sends() == 0);
}

TEST_CASE("who fetches for all and is canceled hands over") {
  Issuer issuer;
  issuer.takes = 10ms;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  talk.network->say(Response(200));
  std::stop_source stop;
  CallOptions first;
  first.stop = stop.get_token();
  auto leader = client.send_async(Request::get("http://api.test/"), first);
  auto other = client.send_async(Request::get("http://api.test/"));
  CallOptions hurried;
  hurried.timeout = 12ms;
  auto late = client.send_async(Request::get("http://api.test/"), hurried);
  talk.clock->advance(5ms);
  stop.request_stop();
  talk.clock->advance(20ms);
  CHECK(leader.get().error().code == Errc::Canceled);
  CHECK(other.get()->status == 200);
  CHECK(late.get().error().code == Errc::Timeout);
  CHECK(issuer.asked == 2);
}

TEST_CASE("a waiter that is canceled leaves the fetch to the others") {
  Issuer issuer;
  issuer.takes = 10ms;
  Conversation talk;
  Client client = talk.client({bearer(issuer.source())});
  talk.network->say(Response(200));
  auto leader = client.send_async(Request::get("http://api.test/"));
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  auto waiter = client.send_async(Request::get("http://api.test/"), options);
  talk.clock->advance(5ms);
  stop.request_stop();
  talk.clock->advance(1ms);
  CHECK(waiter.get().error().code == Errc::Canceled);
  talk.clock->advance(5ms);
  CHECK(leader.get()->status == 200);
  CHECK(issuer.asked == 1);
}

TEST_CASE("threads with loops of their own share one fetch") {
  FaultServer server;
  Issuer issuer;
  issuer.takes = 20ms;
  ClientOptions options;
  options.middlewares = {bearer(issuer.source())};
  options.threads = 2;
  Client client(options);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto request = Request::get(server.url());
      const auto outcome = i % 2 == 0 ? client.send(request) : client.send_async(request).get();
      if (outcome && outcome->status == 200) ++good;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(good == 8);
  CHECK(issuer.asked == 1);
}

TEST_CASE("a token may be fetched by a client of its own, on a thread of its own") {
  FaultServer issuer(Scenario{{200, "from-the-issuer"}});
  FaultServer server;
  auto other = Client::bare();
  Client client({bearer([&](Call&) -> Task<Result<BearerToken>> {
    const Outcome answer = co_await other.co_send(Request::post(issuer.url(), "grant"));
    if (!answer) co_return answer.error();
    co_return BearerToken(answer->body);
  })});
  REQUIRE(client.get(server.url()));
  CHECK(server.seen()[0].headers.get("Authorization") == "Bearer from-the-issuer");
}

TEST_CASE("a call whose time runs out while it fetches for others leaves that to one of them") {
  Issuer issuer;
  issuer.takes = 1s;
  Conversation talk;
  Client client = talk.client({bearer([&](Call& call) -> Task<Result<BearerToken>> {
    auto fetching = issuer.fetch(call);
    if (call.deadline() > call.scheduler().now() + 1s) return fetching;
    return [](Call& hurried) -> Task<Result<BearerToken>> {  // as a client of its own would
      const bool waited =
          co_await hurried.scheduler().sleep_until(hurried.deadline(), hurried.stop());
      co_return Error(Errc::Timeout, waited ? "out of time" : "canceled");
    }(call);
  })});
  talk.network->say(Response(200));
  std::vector<std::optional<Outcome>> outcomes(2);
  const auto send = [&](std::size_t index, Duration timeout) {
    CallOptions options;
    options.timeout = timeout;
    client.send_then(
        Request::get("http://api.test/"),
        [&outcomes, index](Outcome outcome) { outcomes[index].emplace(std::move(outcome)); },
        options);
  };
  send(0, 50ms);
  send(1, 30s);
  talk.clock->advance(60ms);
  REQUIRE(outcomes[0]);
  CHECK((*outcomes[0]).error().code == Errc::Timeout);
  CHECK_FALSE(outcomes[1]);
  talk.clock->advance(2s);
  REQUIRE(outcomes[1]);
  CHECK(*outcomes[1]);
}
