// libcurl sends some requests again by itself. These are the tests that it does not here: one
// attempt is one send, as the server counts them.
#include "raw_server.hpp"
#include "wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const Body kGenerated = Body::reopened([]() -> Result<std::unique_ptr<BodyReader>> {
  class Hello final : public BodyReader {
   public:
    Result<std::size_t> read(std::span<char> into) override {
      if (done_) return std::size_t{0};
      done_ = true;
      return std::string("hello").copy(into.data(), into.size());
    }

   private:
    bool done_ = false;
  };
  return std::unique_ptr<BodyReader>(std::make_unique<Hello>());
});

}  // namespace

TEST_CASE("a POST on a pooled connection that dies is not sent a second time") {
  for (const auto& body : {Body("data"), kGenerated}) {
    FaultServer server(Scenario{Fault::Stale, {200}});
    Client client({retry(hasty())});
    REQUIRE(client.get(server.url())->status == 200);

    const auto outcome = client.post(server.url(), body);

    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Receive);
    CHECK(outcome.error().exchange.reused_connection);
    CHECK(outcome.error().exchange.stale_connection);
    CHECK(outcome.error().exchange.sent == Sent::Maybe);
    CHECK(outcome.error().history.stop_reason == Reason::UnsafeToRepeat);
    CHECK(wire_sends(outcome) == 1);
    CHECK(server.requests() == 2);  // the GET and one POST
  }
}

TEST_CASE("a GET on a pooled connection that dies is sent once more, on a new one, and we say so") {
  FaultServer server(Scenario{Fault::Stale, {200}});
  Client client({retry(hasty())});
  REQUIRE(client.get(server.url())->status == 200);

  const auto outcome = client.get(server.url());

  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  REQUIRE(outcome->history.attempts.size() == 2);
  CHECK(outcome->history.attempts[0].rule == "stale connection");
  CHECK_FALSE(outcome->exchange.reused_connection);
  CHECK(wire_sends(outcome) == 2);
  CHECK(server.requests() == 3);
}

TEST_CASE("without a middleware retry a dead connection is an error, even for a GET") {
  FaultServer server(Scenario{Fault::Stale, {200}});
  auto client = Client::bare();
  REQUIRE(client.get(server.url())->status == 200);
  const auto outcome = client.get(server.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().exchange.stale_connection);
  CHECK(server.requests() == 2);
}

TEST_CASE(
    "a pooled connection that breaks before a response is dead, and one with garbage is not") {
  for (const auto fault : {Fault::Close, Fault::Reset, Fault::Garbage}) {
    CAPTURE(std::string(to_string(fault)));
    FaultServer server(Scenario{{200}, fault});
    auto client = Client::bare();
    REQUIRE(client.get(server.url()));
    const auto outcome = client.get(server.url());
    REQUIRE_FALSE(outcome);
    const auto& error = outcome.error();
    const bool dead = fault != Fault::Garbage;
    CHECK(error.code == (dead ? Errc::Receive : Errc::Protocol));
    CHECK(error.exchange.sent == Sent::Maybe);
    CHECK(error.exchange.reused_connection);
    CHECK(error.exchange.stale_connection == dead);
    CHECK(error.message.ends_with("the reused connection was closed before a response arrived") ==
          dead);
    CHECK(server.requests() == 2);
  }
}

TEST_CASE("a PUT whose body can be read again survives a dead connection with its body whole") {
  FaultServer server(Scenario{Fault::Stale, {200}});
  Client client({retry(hasty())});
  REQUIRE(client.get(server.url())->status == 200);
  const auto outcome = client.put(server.url(), kGenerated);
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  REQUIRE(server.seen().size() == 3);
  CHECK(server.seen()[1].body == "hello");
  CHECK(server.seen()[2].body == "hello");
}

TEST_CASE("a body that can be read once is never sent again as an empty one") {
  FaultServer server(Scenario{Fault::Stale, {200}});
  Client client({retry(hasty())});
  REQUIRE(client.get(server.url())->status == 200);
  bool given = false;
  const auto body = Body::once([&](std::span<char> into) -> std::size_t {
    if (given) return 0;
    given = true;
    return std::string("hello").copy(into.data(), into.size());
  });
  const auto outcome = client.put(server.url(), body);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().history.stop_reason == Reason::NotReplayable);
  REQUIRE(server.seen().size() == 2);
  CHECK(server.seen()[1].body == "hello");
}

TEST_CASE("refused after a silent reconnect is not 'never sent': the server has the POST") {
  std::atomic<int> posts = 0;
  RawServer server([&](int listener) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    read_until(connection, "\r\n\r\n");
    write_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    if (read_until(connection, "data").find("POST") != std::string::npos) ++posts;
    // A second connection would be refused from here on.
    ::shutdown(listener, SHUT_RDWR);
    ::close(connection);
  });
  Client client({retry(hasty())});
  REQUIRE(client.get(server.url())->status == 200);

  const auto outcome = client.post(server.url(), "data");

  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().exchange.sent == Sent::Maybe);
  CHECK(outcome.error().exchange.stale_connection);
  CHECK(outcome.error().history.stop_reason == Reason::UnsafeToRepeat);
  CHECK(wire_sends(outcome) == 1);
  CHECK(posts == 1);
}

TEST_CASE("stale connections, one after the other, do not wear a handle out") {
  std::vector<Step> steps;
  for (int i = 0; i < 20; ++i) steps.emplace_back(Fault::Stale);
  FaultServer server{Scenario(steps)};
  Client client({retry(hasty())});
  REQUIRE(client.get(server.url())->status == 200);
  for (int i = 0; i < 10; ++i) CHECK(client.get(server.url())->status == 200);
}

TEST_CASE("digest takes two sends, and both are told") {
  FaultServer server(Scenario{
      {401, {{"WWW-Authenticate", R"(Digest realm="r", nonce="n", qop="auth", algorithm=MD5)"}}},
      {200, "in"}});
  auto request = Request::get(server.url());
  request.edit_options().credentials.emplace(Credentials::Scheme::Digest, "user", "secret");
  const auto outcome = Client({retry(hasty())}).send(request);
  REQUIRE(outcome);
  CHECK(outcome->body == "in");
  CHECK(outcome->exchange.wire_sends == 2);
  CHECK(outcome->history.attempts.size() == 1);
  CHECK(server.requests() == 2);
  CHECK(server.seen()[1].headers.get("Authorization")->starts_with("Digest"));
}

TEST_CASE("a server that asks for digest again and again gets five sends an attempt") {
  FaultServer server(Scenario{
      {401, {{"WWW-Authenticate", R"(Digest realm="r", nonce="n", qop="auth", stale=true)"}}}});
  auto request = Request::get(server.url());
  request.edit_options().credentials.emplace(Credentials::Scheme::Digest, "user", "secret");
  const auto outcome = Client::bare().send(request);
  CHECK(server.requests() == 5);
  CHECK(exchange_of(outcome).wire_sends == 5);
}

TEST_CASE("a reused handle sends each request to its own URL, with its own credentials") {
  FaultServer server(Scenario{{200}});
  auto client = Client::bare();
  const auto port = std::to_string(server.port());
  REQUIRE(client.get("http://a:1@127.0.0.1:" + port + "/one"));
  REQUIRE(client.get("http://127.0.0.1:" + port + "/two"));
  REQUIRE(client.get("http://b:2@127.0.0.1:" + port + "/three?q=1"));
  const auto seen = server.seen();
  CHECK(seen[0].target == "/one");
  CHECK(seen[0].headers.get("Authorization") == "Basic YTox");
  CHECK(seen[1].target == "/two");
  CHECK_FALSE(seen[1].headers.contains("Authorization"));
  CHECK(seen[2].target == "/three?q=1");
  CHECK(seen[2].headers.get("Authorization") == "Basic Yjoy");
}

TEST_CASE("whatever libcurl makes of a refused Expect, each send is counted") {
  for (const std::size_t size : {4U, 8U << 20U}) {
    FaultServer server(Scenario{{417}, {200}});
    auto request =
        Request::post(server.url(), std::string(size, 'x')).set_header("Expect", "100-continue");
    const auto outcome = Client::bare().send(request);
    CHECK(exchange_of(outcome).wire_sends == static_cast<int>(server.requests()));
  }
}

TEST_CASE("what may not be sent twice uses no connection that the server is about to close") {
  Step answer(200, {{"Keep-Alive", "timeout=1"}});
  FaultServer server(Scenario{answer});
  auto client = Client::bare();
  REQUIRE(client.get(server.url()));
  REQUIRE(client.get(server.url()));
  CHECK(server.connections() == 1);
  // One second, less one: none is young enough.
  REQUIRE(client.post(server.url(), "d"));
  CHECK(server.connections() == 2);
}
