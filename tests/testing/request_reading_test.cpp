#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <chrono>
#include <string>
#include <utility>

using namespace httpretry;
using namespace raw;
using namespace std::chrono_literals;

TEST_CASE("a request is logged as it was sent") {
  FaultServer server;
  RawClient client(server.port());
  const auto before = std::chrono::steady_clock::now();
  client.ask(
      "PUT /a/b?c=d HTTP/1.1\r\nHost: x\r\nX-Tag: 1\r\nx-tag: 2\r\nContent-Length: 5\r\n\r\nhello");

  const auto seen = server.seen();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].connection == 1);
  CHECK(seen[0].method == "PUT");
  CHECK(seen[0].target == "/a/b?c=d");
  CHECK(seen[0].path == "/a/b");
  CHECK(seen[0].http_version == "1.1");
  CHECK(seen[0].headers.get_all("X-Tag") == std::vector<std::string_view>{"1", "2"});
  CHECK(seen[0].body == "hello");
  CHECK(seen[0].body_size == 5);
  CHECK(seen[0].body_complete);
  CHECK(seen[0].arrived >= before);
  CHECK(seen[0].arrived <= std::chrono::steady_clock::now());
}

TEST_CASE("a chunked body is logged without its framing, extensions and trailers") {
  FaultServer server;
  RawClient client(server.port());
  const auto answer = client.ask(
      "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "5;ext=1\r\nhello\r\n6 \r\n world\r\n0\r\nTrailer: x\r\n\r\n");
  CHECK(status_of(answer) == 200);
  CHECK(server.seen()[0].body == "hello world");
  CHECK(server.seen()[0].body_complete);
  CHECK(status_of(client.ask(get())) == 200);
}

TEST_CASE("a long body is counted completely and kept in part") {
  FaultServer server;
  RawClient client(server.port());
  const std::string body(3'000'000, 'b');
  client.ask("POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + body);
  CHECK(server.seen()[0].body_size == body.size());
  CHECK(server.seen()[0].body.size() == 1024 * 1024);
  CHECK(server.seen()[0].body_complete);
}

TEST_CASE("a request whose body breaks off is logged, takes its step, and gets no response") {
  FaultServer server({500, 200});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  ::shutdown(client.fd(), SHUT_WR);
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Fin);

  REQUIRE(server.requests() == 1);
  CHECK(server.seen()[0].body == "abc");
  CHECK_FALSE(server.seen()[0].body_complete);
  CHECK(status_of(RawClient(server.port()).ask(get())) == 200);
}

TEST_CASE("an invalid request gets an error status, is not logged, and takes no step") {
  const std::pair<std::string, int> cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"GET  HTTP/1.1\r\n\r\n", 400},
      {"GET / a HTTP/1.1\r\n\r\n", 400},
      {"G@T / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: \r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
       400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nA: " + std::string(70'000, 'a') + "\r\n\r\n", 431},
      {"GET / HTTP/1.1\r\nA: " + std::string(65'580 - 19, 'a') + "\r\n\r\n", 431},  // 64 KiB and 44
      {std::string(1'000'000, 'a'), 431},
      {"CONNECT a:1 HTTP/1.1\r\n\r\n", 405},
  };
  FaultServer server({201});
  for (const auto& [request, status] : cases) {
    const auto which = request.substr(0, 80);
    CAPTURE(which);
    RawClient client(server.port());
    client.send(request);
    ::shutdown(client.fd(), SHUT_WR);
    CHECK(status_of(client.read_to_end()) == status);
    CHECK(client.end() == End::Fin);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("a head may have nearly 64 KiB, and the line of a chunk nearly 8 KiB") {
  FaultServer server({201});
  RawClient client(server.port());
  CHECK(status_of(client.ask("GET / HTTP/1.1\r\nA: " + std::string(65'400, 'a') + "\r\n\r\n")) ==
        201);
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(status_of(client.ask(chunked + "1;" + std::string(8'100, 'a') + "\r\nb\r\n0\r\n\r\n")) ==
        201);
  // The connection ends without waiting for the end of a line that is too long.
  client.send(chunked + std::string(8'200, '1'));
  CHECK(client.read_to_end().empty());
  CHECK(client.end() != End::Open);
}

TEST_CASE("an invalid chunk gets a 400, and the request is logged") {
  FaultServer server;
  for (const auto* chunk : {"x\r\n", "2\r\nabc\r\n", "-1\r\n", "\r\n"}) {
    RawClient client(server.port());
    client.send(std::string("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") + chunk);
    CHECK(status_of(client.read_to_end()) == 400);
    CHECK_FALSE(server.seen().back().body_complete);
  }
  CHECK(server.requests() == 4);
}

TEST_CASE("a request that arrives in single bytes is read like any other") {
  FaultServer server;
  RawClient client(server.port());
  const std::string request =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
  for (const char byte : request) client.send({&byte, 1});
  CHECK(status_of(client.read_response()) == 200);
  CHECK(server.seen()[0].body == "ab");
}

namespace {

constexpr const char* kExpecting =
    "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";

}  // namespace

TEST_CASE("a request that expects 100 Continue gets it before its body is sent") {
  FaultServer server;
  RawClient client(server.port());
  client.send(kExpecting);
  CHECK(client.read_until(head_ended) == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  CHECK(status_of(client.read_response()) == 200);
  CHECK(server.seen()[0].body == "abc");
}

TEST_CASE("with ignore_expect no 100 Continue is sent, but the body is read") {
  Step step(200);
  step.ignore_expect = true;
  FaultServer server({step});
  RawClient client(server.port());
  client.send(kExpecting);
  client.send("abc");
  CHECK(status_of(client.read_response()) == 200);
  CHECK(server.seen()[0].body == "abc");
}

TEST_CASE("a 417 is sent without waiting for the body") {
  FaultServer server({417});
  RawClient client(server.port());
  client.send(kExpecting);
  const auto answer = client.read_response();
  CHECK(status_of(answer) == 417);
  CHECK(answer.find("\r\nConnection: close\r\n") != std::string::npos);
  CHECK_FALSE(server.seen()[0].body_complete);
}

TEST_CASE("an early response and a FIN reach a client that is still sending") {
  Step step(413);
  step.respond_early = true;
  FaultServer server({step});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 10000000\r\n\r\n");
  CHECK(status_of(client.read_response()) == 413);
  client.send(std::string(8'000'000, 'x'));
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Fin);
  CHECK(server.seen()[0].body_size == 0);
}

TEST_CASE("an early reset happens before the body is read") {
  Step step(Fault::Reset);
  step.respond_early = true;
  FaultServer server({step});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n");
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Rst);
  CHECK(server.requests() == 1);
}

TEST_CASE("a stale connection sends nothing to a request that expects 100 Continue") {
  FaultServer server({Fault::Stale});
  RawClient client(server.port());
  client.ask(get());
  client.send(kExpecting);
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Fin);
  CHECK(server.requests() == 2);
}
