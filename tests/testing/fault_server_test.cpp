#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <list>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace raw;
using namespace std::chrono_literals;

TEST_CASE("a plain response is the framed step, byte for byte") {
  FaultServer server({{429, Headers{{"Retry-After", "1"}, {"X-Empty", ""}}, "busy"}});
  RawClient client(server.port());
  CHECK(client.ask(get()) ==
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nX-Empty: \r\nContent-Length: 4\r\n\r\n"
        "busy");
}

TEST_CASE("a header of the step replaces the server's own") {
  FaultServer server({{200, Headers{{"content-length", "9"}}, "short"},
                      {200, Headers{{"Transfer-Encoding", "chunked"}}, "abc"}});
  RawClient client(server.port());
  client.send(get());
  CHECK(client.read_until([](const auto& text) { return text.ends_with("short"); }) ==
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort");
  client.send(get());
  CHECK(client.read_until([](const auto& text) { return text.ends_with("0\r\n\r\n"); }) ==
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
}

TEST_CASE("a response to HEAD has the length of the body and no body") {
  FaultServer server({{200, "body"}});
  RawClient client(server.port());
  client.send("HEAD / HTTP/1.1\r\n\r\n" + get());
  CHECK(client.read_response(false) == "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  CHECK(client.read_response() == "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
}

TEST_CASE("204 and 304 have neither body nor length, and the connection is kept") {
  FaultServer server({{204, "x"}, {304, "x"}, 200});
  RawClient client(server.port());
  CHECK(client.ask(get()) == "HTTP/1.1 204 No Content\r\n\r\n");
  CHECK(client.ask(get()) == "HTTP/1.1 304 Not Modified\r\n\r\n");
  CHECK(status_of(client.ask(get())) == 200);
  CHECK(server.connections() == 1);
}

TEST_CASE("interim responses come before the delay, and not to HTTP/1.0") {
  Step step(200);
  step.interims = {100, {103, Headers{{"Link", "</a>"}}}};
  step.delay = 60ms;
  FaultServer server({step});

  RawClient client(server.port());
  const auto start = std::chrono::steady_clock::now();
  client.send(get());
  const auto interims =
      client.read_until([](const auto& text) { return text.ends_with("</a>\r\n\r\n"); });
  CHECK(interims == "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  CHECK(status_of(client.read_response()) == 200);
  CHECK(std::chrono::steady_clock::now() - start >= 60ms);

  RawClient old(server.port());
  old.send("GET / HTTP/1.0\r\n\r\n");
  CHECK(old.read_to_end() == "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  CHECK(old.end() == End::Fin);
}

TEST_CASE("a connection ends if the client, the step or the server says so") {
  FaultServer server({200, 200, {200, Headers{{"Connection", "Close"}}}});
  RawClient client(server.port());
  CHECK(status_of(client.ask(get())) == 200);
  client.send("GET / HTTP/1.1\r\nConnection: TE, close\r\n\r\n");
  CHECK(client.read_to_end().find("\r\nConnection: close\r\n") != std::string::npos);
  CHECK(client.end() == End::Fin);

  RawClient told(server.port());
  told.send(get());
  CHECK(told.read_to_end().find("\r\nConnection: Close\r\n") != std::string::npos);
  CHECK(told.end() == End::Fin);

  FaultServerOptions options;
  options.keep_alive = false;
  FaultServer closing({200}, options);
  RawClient cut(closing.port());
  cut.send(get());
  CHECK(cut.read_to_end().find("\r\nConnection: close\r\n") != std::string::npos);
  CHECK(cut.end() == End::Fin);
}

TEST_CASE("an idle timeout is announced and enforced") {
  FaultServerOptions options;
  options.idle_timeout = 1s;
  FaultServer server({200}, options);
  RawClient client(server.port());
  CHECK(client.ask(get()).find("\r\nKeep-Alive: timeout=1\r\n") != std::string::npos);

  const auto start = std::chrono::steady_clock::now();
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Fin);
  CHECK(std::chrono::steady_clock::now() - start >= 900ms);
}

TEST_CASE("stop ends hanging, dripping, idle and half-read connections") {
  Step drip(Fault::Drip);
  drip.interval = 1h;
  Step slow(200);
  slow.delay = 1h;
  Step huge(Fault::Huge);
  FaultServer server({200, Fault::Hang, drip, slow, huge});
  std::list<RawClient> clients;
  for (int i = 0; i < 5; ++i) {
    clients.emplace_back(server.port()).send(get());
    REQUIRE(server.wait_for_requests(static_cast<std::size_t>(i) + 1, 10s));
  }
  clients.emplace_back(server.port()).send("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\na");
  clients.emplace_back(server.port()).send("GE");
  clients.emplace_back(server.port());

  server.stop();  // blocks for an hour or forever if it waits for one of them
  for (auto& client : clients) {
    client.read_to_end();
    CHECK(client.end() != End::Open);
  }
}

TEST_CASE("restart listens on the same port, and keeps steps and counts") {
  FaultServer server({500, 501, 502});
  const auto port = server.port();
  RawClient before(port);
  CHECK(status_of(before.ask(get())) == 500);

  server.stop();
  CHECK_FALSE(RawClient(port).connected());
  server.restart();
  CHECK(server.port() == port);
  CHECK(status_of(RawClient(port).ask(get())) == 501);
  server.restart();
  CHECK(status_of(RawClient(port).ask(get())) == 502);
  CHECK(server.requests() == 3);
  CHECK(server.connections() == 3);
}

TEST_CASE("the constructor throws for an address that is in use or invalid") {
  FaultServer server;
  FaultServerOptions options;
  options.port = server.port();
  CHECK_THROWS_AS(FaultServer({}, options), std::system_error);
  options.address = "nowhere.invalid";
  CHECK_THROWS_AS(FaultServer({}, options), std::system_error);
}

TEST_CASE("the URL has the address of the server") {
  FaultServer server;
  const auto port = std::to_string(server.port());
  CHECK(server.url() == "http://127.0.0.1:" + port + "/");
  CHECK(server.url("/a?b") == "http://127.0.0.1:" + port + "/a?b");
  CHECK(server.ca_file().empty());
  FaultServerOptions options;
  options.address = "0.0.0.0";
  const FaultServer everywhere({}, options);
  CHECK(everywhere.url("/a") == "http://localhost:" + std::to_string(everywhere.port()) + "/a");
}

TEST_CASE("on_request gets every request before its response is written") {
  std::atomic<int> calls = 0;
  std::string seen_path;
  FaultServerOptions options;
  options.on_request = [&](const SeenRequest& request) {
    seen_path = request.path;
    ++calls;
  };
  FaultServer server({200}, options);
  RawClient client(server.port());
  client.ask(get("/one"));
  CHECK(calls == 1);
  CHECK(seen_path == "/one");
}

TEST_CASE("only the last `max_seen` requests are kept, and all are counted") {
  FaultServerOptions options;
  options.max_seen = 2;
  FaultServer server({200}, options);
  RawClient client(server.port());
  for (const auto* path : {"/1", "/2", "/3"}) client.ask(get(path));

  CHECK(server.requests() == 3);
  REQUIRE(server.seen().size() == 2);
  CHECK(server.seen()[0].path == "/2");
  CHECK(server.wait_for_requests(3, 0s));
  CHECK_FALSE(server.wait_for_requests(4, 1ms));
}

TEST_CASE("connections beyond the limit are reset, until another one ends") {
  FaultServerOptions options;
  options.max_connections = 2;
  FaultServer server({200}, options);
  RawClient first(server.port());
  CHECK(status_of(first.ask(get())) == 200);
  RawClient second(server.port());
  CHECK(status_of(second.ask(get())) == 200);

  RawClient third(server.port());
  third.send(get());
  CHECK(third.read_to_end().empty());
  CHECK(third.end() == End::Rst);
  CHECK(server.connections() == 2);

  second.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  second.read_to_end();
  int status = 0;
  for (int tries = 0; status == 0 && tries < 1000; ++tries) {
    status = status_of(RawClient(server.port()).ask(get()));
  }
  CHECK(status == 200);
}
