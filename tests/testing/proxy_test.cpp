#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <chrono>
#include <string>

using namespace httpretry;
using namespace raw;
using namespace std::chrono_literals;

namespace {

FaultServerOptions as_proxy() {
  FaultServerOptions options;
  options.proxy = true;
  return options;
}

std::string connect_to(const std::string& authority) {
  return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}

std::string local(const FaultServer& server) {
  return "127.0.0.1:" + std::to_string(server.port());
}

}  // namespace

TEST_CASE("a CONNECT with a 200 becomes a tunnel, also for bytes sent before the response") {
  FaultServer origin({{201, "first"}, {202, "second"}});
  FaultServer proxy({{200, Headers{{"Via", "x"}}}}, as_proxy());
  RawClient client(proxy.port());
  client.send(connect_to(local(origin)) + get("/early"));

  const auto tunnelled =
      client.read_until([](const std::string& text) { return text.ends_with("first"); });
  CHECK(tunnelled.starts_with("HTTP/1.1 200 OK\r\nVia: x\r\n\r\nHTTP/1.1 201 Created\r\n"));
  CHECK(body_of(client.ask(get())) == "second");

  CHECK(proxy.requests() == 1);
  CHECK(proxy.seen()[0].path == local(origin));
  CHECK(origin.requests() == 2);
  CHECK(origin.connections() == 1);
}

TEST_CASE("every 2xx opens a tunnel, and a 300 does not") {
  FaultServer origin({{201, "through"}});
  FaultServer proxy({299, 300}, as_proxy());
  RawClient tunneled(proxy.port());
  tunneled.send(connect_to(local(origin)));
  CHECK(status_of(tunneled.read_until(head_ended)) == 299);
  CHECK(body_of(tunneled.ask(get())) == "through");
  RawClient client(proxy.port());
  CHECK(status_of(client.ask(connect_to(local(origin)))) == 300);
  CHECK(origin.connections() == 1);
}

TEST_CASE("both kinds of end pass through a tunnel") {
  for (const auto& [fault, end] :
       {std::pair{Fault::Close, End::Fin}, std::pair{Fault::Reset, End::Rst}}) {
    const auto which = to_string(fault);
    CAPTURE(which);
    FaultServer origin({fault});
    FaultServer proxy({200}, as_proxy());
    RawClient client(proxy.port());
    client.send(connect_to(local(origin)));
    CHECK(status_of(client.read_until(head_ended)) == 200);
    client.send(get());
    ::shutdown(client.fd(), SHUT_WR);
    CHECK(client.read_to_end().empty());
    CHECK(client.end() == end);
  }
}

TEST_CASE("a tunnel carries a lot of data in both directions at the same time") {
  Step huge(Fault::Huge);
  huge.size = 20'000'000;
  huge.respond_early = true;
  FaultServer origin({huge});
  FaultServer proxy({200}, as_proxy());
  RawClient client(proxy.port());
  client.send(connect_to(local(origin)));
  CHECK(status_of(client.read_until(head_ended)) == 200);
  client.send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x'));
  CHECK(client.read_to_end().size() > huge.size);
}

TEST_CASE("a CONNECT gets the faults and errors of its step, and the connection is kept") {
  FaultServer origin;
  FaultServer proxy({{407, Headers{{"Proxy-Authenticate", "Basic realm=x"}}}, 503, Fault::Reset},
                    as_proxy());
  RawClient client(proxy.port());
  const auto answer = client.ask(connect_to(local(origin)));
  CHECK(status_of(answer) == 407);
  CHECK(answer.find("\r\nProxy-Authenticate: Basic realm=x\r\n") != std::string::npos);
  CHECK(status_of(client.ask(connect_to(local(origin)))) == 503);
  client.send(connect_to(local(origin)));
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Rst);
  CHECK(origin.connections() == 0);
}

TEST_CASE("a tunnel leads only to this machine; 502 if nobody listens") {
  FaultServer gone;
  gone.stop();
  FaultServer proxy({200}, as_proxy());
  for (const auto* elsewhere : {"example.com:80", "10.0.0.1:80", "127.evil.example:80", "localhost",
                                "127.0.0.1:http", ""}) {
    CAPTURE(elsewhere);
    const auto status = status_of(RawClient(proxy.port()).ask(connect_to(elsewhere)));
    CHECK(status == (*elsewhere == '\0' ? 400 : 403));
  }
  CHECK(status_of(RawClient(proxy.port()).ask(connect_to(local(gone)))) == 502);
}

TEST_CASE("a request in absolute form takes the steps of its path") {
  Scenario scenario({200});
  scenario.paths.emplace("/a", Script({404}));
  scenario.paths.emplace("/", Script({201}));
  FaultServer proxy(scenario, as_proxy());
  RawClient client(proxy.port());
  CHECK(status_of(client.ask(get("http://example.com/a?b"))) == 404);
  CHECK(status_of(client.ask(get("http://example.com?b"))) == 201);
  CHECK(status_of(client.ask(get("http://example.com/other"))) == 200);
  CHECK(proxy.seen()[0].target == "http://example.com/a?b");
  CHECK(proxy.seen()[1].path == "/");
}

TEST_CASE("stop ends an open tunnel") {
  FaultServer origin({Fault::Hang});
  FaultServer proxy({200}, as_proxy());
  RawClient client(proxy.port());
  client.send(connect_to(local(origin)) + get());
  REQUIRE(origin.wait_for_requests(1, 10s));

  proxy.stop();  // blocks forever if it waits for the tunnel
  client.read_to_end();
  CHECK(client.end() != End::Open);
}
