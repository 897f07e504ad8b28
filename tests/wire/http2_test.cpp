#include "http2_server.hpp"
#include "tests/waiting.hpp"
#include "wire.hpp"

#include <future>

using namespace httpretry;

namespace {

ClientOptions trusting(const std::string& ca_file, std::vector<MiddlewarePtr> chain = {}) {
  ClientOptions options;
  options.connection.ca_file = ca_file;
  options.middlewares = std::move(chain);
  return options;
}

}  // namespace

TEST_CASE("HTTP/2 is negotiated over TLS, and not where a request asks for HTTP/1.1") {
  const Nghttpd server;
  Client client(trusting(server.ca_file()));
  const auto two = client.get(server.url());
  REQUIRE(two);
  CHECK(two->http_version == "2");
  CHECK(two->reason.empty());
  CHECK(two->body == "hello, two");
  CHECK(two->headers.contains("server"));

  auto request = Request::get(server.url());
  request.edit_options().http_version = HttpVersion::Http1;
  // nghttpd speaks nothing else: that it does not answer shows what was offered.
  CHECK_FALSE(client.send(request));
}

TEST_CASE("many requests at once share one HTTP/2 connection") {
  const Nghttpd server;
  Client client(trusting(server.ca_file()));
  const auto before = server.connections();
  std::vector<std::future<Outcome>> outcomes;
  for (int i = 0; i < 50; ++i) outcomes.push_back(client.send_async(Request::get(server.url())));
  for (auto& outcome : outcomes) {
    const auto answer = outcome.get();
    REQUIRE(answer);
    CHECK(answer->http_version == "2");
  }
  CHECK(server.connections() == before + 1);
}

// libcurl 7.88 forgets the end of a body that it received while it ran another transfer of the
// connection. Without help about one round in eight waits here until its stall_timeout.
TEST_CASE("large bodies at once over one HTTP/2 connection all come to their ends") {
  const Nghttpd server;
  Client client(trusting(server.ca_file()));
  for (int round = 0; round < 25; ++round) {
    std::vector<std::future<Outcome>> outcomes;
    for (int i = 0; i < 40; ++i) {
      auto request = Request::get(server.url(i % 4 == 0 ? "/large" : "/hello"));
      request.edit_options().stall_timeout = std::chrono::seconds(10);
      outcomes.push_back(client.send_async(std::move(request)));
    }
    for (int i = 0; i < 40; ++i) {
      const auto outcome = outcomes[static_cast<std::size_t>(i)].get();
      if (!outcome) FAIL(outcome.error().message);
      CHECK(outcome->body.size() == (i % 4 == 0 ? Nghttpd::kLarge : 10));
    }
  }
}

TEST_CASE("a 404 over HTTP/2 is a response") {
  const Nghttpd server;
  const auto outcome =
      Client(trusting(server.ca_file(), {retry(hasty())})).get(server.url() + "/nothing");
  REQUIRE(outcome);
  CHECK(outcome->status == 404);
  CHECK(outcome->exchange.wire_sends == 1);
}

TEST_CASE("a refused stream is one send, and may be sent again whatever the method") {
  for (const char* method : {"GET", "POST"}) {
    RefusingServer server(2);
    Client client(trusting(server.ca_file(), {retry(hasty())}));
    const auto outcome = client.send(Request(method, server.url()));
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
    CHECK(outcome->history.attempts.size() == 3);
    CHECK(wire_sends(outcome) == 3);
    CHECK(server.streams() == 3);
  }
}

TEST_CASE("a server that refuses for ever gets as many sends as the policy allows") {
  RefusingServer server(1000);
  auto policy = hasty();
  policy.max_attempts = 3;
  const auto outcome =
      Client(trusting(server.ca_file(), {retry(policy)})).post(server.url(), "data");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().history.stop_reason == Reason::AttemptsExhausted);
  CHECK(wire_sends(outcome) == 3);
  CHECK(server.streams() == 3);
}

TEST_CASE("a connection that dies under two requests is no refusal of the one that made it") {
  RefusingServer server(0, 2);
  auto policy = hasty();
  policy.attempt_timeout = std::chrono::seconds(5);  // of a third send, which would get no response
  // Which of the two libcurl looks at first, and would send again, is chance.
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    Client client(trusting(server.ca_file(), {retry(policy)}));
    auto first = client.send_async(Request::post(server.url(), "unsafe"));
    wait_until([&] { return server.streams() >= 2 * round + 1; });
    auto second = client.send_async(Request::post(server.url(), "unsafe"));
    for (auto* future : {&first, &second}) {
      const auto outcome = future->get();
      REQUIRE_FALSE(outcome);
      CHECK(outcome.error().history.stop_reason == Reason::UnsafeToRepeat);
      CHECK_FALSE(outcome.error().exchange.refused);
      CHECK(wire_sends(outcome) == 1);
    }
    REQUIRE(server.streams() == 2 * round + 2);
  }
}
