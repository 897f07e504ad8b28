// What each misbehaviour of a server leads to, for a request that may be repeated and for one that
// may not; and that the server saw as many requests as we say that we sent.
#include "raw_server.hpp"
#include "wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

struct Row {
  const char* what;
  Step step;  // all requests meet it
  std::optional<Errc> error;
  int curl_code;
  Sent sent;
  bool partial;
  bool get_again;   // the standard policy sends a GET again
  bool post_again;  // and a POST
};

Step with(Step step, Duration delay) {
  step.delay = delay;
  return step;
}

Step gzip(Step step) {
  step.gzip = true;
  return step;
}

std::vector<Row> rows() {
  const auto none = std::optional<Errc>();
  return {
      {"reads, closes", Fault::Close, Errc::Receive, 52, Sent::Maybe, false, true, false},
      {"reads, resets", Fault::Reset, Errc::Receive, 56, Sent::Maybe, false, true, false},
      {"reads, hangs", Fault::Hang, Errc::Timeout, 28, Sent::Maybe, false, true, false},
      {"breaks off in the body", Fault::Truncate, Errc::Receive, 18, Sent::Answered, true, true,
       false},
      {"resets in the body", Fault::ResetDuring, Errc::Receive, 56, Sent::Answered, true, true,
       false},
      {"drips for ever", Fault::Drip, Errc::Timeout, 28, Sent::Answered, true, true, false},
      {"answers with garbage", Fault::Garbage, Errc::Protocol, 1, Sent::Maybe, false, true, false},
      {"chunks wrongly", Fault::BadChunk, Errc::Receive, 56, Sent::Answered, true, true, false},
      {"more body than allowed", Fault::Huge, Errc::TooLarge, 63, Sent::Answered, false, false,
       false},
      {"more headers than allowed", Fault::HugeHeaders, Errc::TooLarge, 63, Sent::Maybe, false,
       false, false},
      {"interim answers without end", Fault::EndlessInterim, Errc::TooLarge, 63, Sent::Maybe, false,
       false, false},
      {"gzip that ends early", Fault::GzipCutShort, Errc::Receive, 18, Sent::Answered, true, true,
       false},
      {"200", {200, "ok"}, none, 0, Sent::Answered, false, false, false},
      {"404", {404}, none, 0, Sent::Answered, false, false, false},
      {"413", {413}, none, 0, Sent::Answered, false, false, false},
      {"500", {500}, none, 0, Sent::Answered, false, true, false},
      {"502", {502}, none, 0, Sent::Answered, false, true, false},
      {"503", {503}, none, 0, Sent::Answered, false, true, false},
      {"504", {504}, none, 0, Sent::Answered, false, true, false},
      {"501", {501}, none, 0, Sent::Answered, false, false, false},
      {"429", {429}, none, 0, Sent::Answered, false, true, true},
      {"429, come back at once",
       {429, {{"Retry-After", "0"}}},
       none,
       0,
       Sent::Answered,
       false,
       true,
       true},
      {"503, come back at once",
       {503, {{"Retry-After", "0"}}},
       none,
       0,
       Sent::Answered,
       false,
       true,
       true},
      {"503, come back in the past",
       {503, {{"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}}},
       none,
       0,
       Sent::Answered,
       false,
       true,
       true},
      {"503, come back at nonsense",
       {503, {{"Retry-After", "soon"}}},
       none,
       0,
       Sent::Answered,
       false,
       true,
       false},
      {"503, come back next year",
       {503, {{"Retry-After", "31536000"}}},
       none,
       0,
       Sent::Answered,
       false,
       false,
       false},
  };
}

Outcome meet(const Row& row, const Request& asked) {
  auto policy = hasty();
  policy.max_attempts = 2;
  policy.attempt_timeout = row.error == Errc::Timeout ? 500ms : 30s;
  ClientOptions options;
  options.middlewares = {retry(policy)};
  options.connection.max_body = 1 << 20;
  Client client(options);
  auto request = asked;
  request.edit_options().compressed = std::string_view(row.what).starts_with("gzip");
  return client.send(request);
}

void check(const Row& row, const Request& request, bool again) {
  FaultServer server(Scenario{row.step});
  auto here = request;
  here.set_url(server.url());

  const auto outcome = meet(row, here);

  CAPTURE(request.method());
  CAPTURE((outcome ? std::string("answered") : outcome.error().message));
  REQUIRE(outcome.has_value() == !row.error.has_value());
  if (row.error) {
    CHECK(outcome.error().code == *row.error);
    CHECK(outcome.error().curl_code == row.curl_code);
    CHECK(outcome.error().partial == row.partial);
  } else {
    CHECK(outcome->status == row.step.status);
  }
  CHECK(exchange_of(outcome).sent == row.sent);
  CHECK(history_of(outcome).attempts.size() == (again ? 2 : 1));
  CHECK(static_cast<int>(server.requests()) == wire_sends(outcome));
  CHECK(server.requests() == (again ? 2 : 1));
}

}  // namespace

TEST_CASE("every fault of a server ends as it should, and the server's count is ours") {
  for (const auto& row : rows()) {
    CAPTURE(row.what);
    check(row, Request::get("http://x/"), row.get_again);
    check(row, Request::post("http://x/", "data"), row.post_again);
  }
}

TEST_CASE(
    "a closed port, an unknown name and a broken handshake send nothing, and any method is "
    "retried") {
  const ClosedPort closed;
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  FaultServer reset(Scenario{Fault::TlsReset}, tls);
  FaultServer stall(Scenario{Fault::TlsStall}, tls);
  struct Unsent {
    std::string url;
    Errc code;
    int curl_code;
  };
  for (const auto& row : std::vector<Unsent>{{closed.url(), Errc::Connect, 7},
                                             {"http://no-such-host.invalid/", Errc::Resolve, 6},
                                             {reset.url(), Errc::Tls, 35},
                                             {stall.url(), Errc::Timeout, 28}}) {
    CAPTURE(row.url);
    auto policy = hasty();
    policy.max_attempts = 2;
    policy.connect_timeout = row.code == Errc::Timeout ? 500ms : 30s;
    Client client({retry(policy)});
    for (auto request : {Request::get(row.url), Request::post(row.url, "d")}) {
      const auto outcome = client.send(request);
      REQUIRE_FALSE(outcome);
      CHECK(outcome.error().code == row.code);
      CHECK(outcome.error().curl_code == row.curl_code);
      CHECK(outcome.error().exchange.sent == Sent::Never);
      CHECK(outcome.error().exchange.body_received == 0);
      CHECK(history_of(outcome).attempts.size() == 2);
      CHECK(wire_sends(outcome) == 0);
    }
  }
  CHECK(reset.requests() == 0);
  CHECK(stall.requests() == 0);
}

TEST_CASE("no limit is no limit, and one that is far away cuts nothing short") {
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  FaultServer stall(Scenario{Fault::TlsStall}, tls);
  auto policy = hasty();
  policy.max_attempts = 1;
  policy.connect_timeout = kForever;
  policy.attempt_timeout = 300ms;
  const auto stalled = Client({retry(policy)}).get(stall.url());
  REQUIRE_FALSE(stalled);
  CHECK(stalled.error().code == Errc::Timeout);
  CHECK(stalled.error().exchange.timings.total >= 300ms);

  Step slow(200, "slow");
  slow.delay = 2300ms;  // libcurl's own limit has 2 s of grace
  FaultServer server(Scenario{slow});
  CallOptions month;
  month.timeout = 30 * 24h;
  CHECK(Client({timeout(30 * 24h)}).send(Request::get(server.url()), month));
}

TEST_CASE("a reset before the request is read counts as sent: nobody can know") {
  FaultServer server(Scenario{Fault::ResetEarly});
  Client client({retry(hasty())});
  const auto post = client.post(server.url(), "d");
  REQUIRE_FALSE(post);
  CHECK(post.error().maybe_sent());
  CHECK(post.error().history.stop_reason == Reason::UnsafeToRepeat);
  CHECK(server.connections() == 1);
}

TEST_CASE("an untrusted certificate is final, and nothing is sent") {
  for (const auto kind : {Tls::Expired, Tls::WrongHost, Tls::SelfSigned}) {
    FaultServerOptions options;
    options.tls = kind;
    FaultServer server(Scenario{{200}}, options);
    ClientOptions trusting;
    trusting.middlewares = {retry(hasty())};
    trusting.connection.ca_file = server.ca_file();
    const auto outcome = Client(trusting).get(server.url());
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Tls);
    CHECK(outcome.error().curl_code == 60);
    CHECK(outcome.error().permanent);
    CHECK(history_of(outcome).attempts.size() == 1);
    CHECK(server.requests() == 0);
  }
}

TEST_CASE("a server that does not speak TLS will not learn it, so there is no retry") {
  std::atomic<int> connections = 0;
  RawServer server([&](int listener) {
    for (int fd = 0; (fd = ::accept(listener, nullptr, nullptr)) >= 0; ::close(fd)) {
      ++connections;
      write_all(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
      read_until(fd, "the end of the connection");
    }
  });
  const auto url = server.url("https");
  const auto outcome = Client({retry(hasty())}).get(url);
  REQUIRE_FALSE(outcome);
  const auto& error = outcome.error();
  CHECK(error.code == Errc::Tls);
  CHECK(error.permanent);
  CHECK(error.history.attempts.size() == 1);
  CHECK(connections == 1);
  const auto port = url.substr(url.rfind(':') + 1, url.find('/', 8) - url.rfind(':') - 1);
  CHECK(error.message.find("the server does not speak TLS on port " + port) != std::string::npos);
}

TEST_CASE("a good certificate is trusted through its file, and only then") {
  FaultServerOptions options;
  options.tls = Tls::Good;
  FaultServer server(Scenario{{200, "secret"}}, options);
  ClientOptions trusting;
  trusting.middlewares = {};
  trusting.connection.ca_file = server.ca_file();
  CHECK(Client(trusting).get(server.url())->body == "secret");
  CHECK(Client::bare().get(server.url()).error().curl_code == 60);
  ClientOptions careless;
  careless.middlewares = {};
  careless.connection.verify_tls = false;
  CHECK(Client(careless).get(server.url())->body == "secret");
}

TEST_CASE("what a proxy refuses never reached the origin") {
  struct Refusal {
    Step step;
    std::size_t attempts;
    bool permanent;
  };
  for (const auto& row : std::vector<Refusal>{{{503}, 2, false},
                                              {Fault::Close, 2, false},
                                              {{429}, 2, false},
                                              {{500}, 1, false},
                                              {{499}, 1, true},
                                              {{407}, 1, true},
                                              {{403}, 1, true}}) {
    FaultServerOptions options;
    options.proxy = true;
    FaultServer proxy(Scenario{row.step}, options);
    const Environment environment("https_proxy", proxy.url());
    auto policy = hasty();
    policy.max_attempts = 2;
    Client client({retry(policy)});

    const auto outcome = client.post("https://origin.example/", "d");

    CAPTURE(row.step.status);
    REQUIRE_FALSE(outcome);
    CAPTURE(outcome.error().message);
    CHECK(outcome.error().curl_code == 56);
    CHECK(outcome.error().exchange.sent == Sent::Never);
    CHECK(history_of(outcome).attempts.size() == row.attempts);
    CHECK(proxy.requests() == row.attempts);
    if (row.step.fault == Fault::None) {
      CHECK(outcome.error().code == Errc::Connect);
      CHECK(outcome.error().from_proxy);
      CHECK(outcome.error().status == row.step.status);
      CHECK(outcome.error().permanent == row.permanent);
      CHECK(outcome.error().message.find("refused to connect, with status " +
                                         std::to_string(row.step.status)) != std::string::npos);
    }
  }
}

TEST_CASE("a proxy tunnels, and its own answer to CONNECT is not taken for the origin's") {
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  FaultServer origin(Scenario{{201, {{"X-Who", "origin"}}, "made"}}, tls);
  FaultServerOptions options;
  options.proxy = true;
  FaultServer proxy(Scenario{{200, {{"X-Who", "proxy"}}}}, options);
  const Environment environment("https_proxy", proxy.url());
  ClientOptions trusting;
  trusting.middlewares = {};
  trusting.connection.ca_file = origin.ca_file();
  const auto outcome = Client(trusting).post(origin.url(), "d");
  REQUIRE(outcome);
  CHECK(outcome->status == 201);
  CHECK(outcome->headers.get_all("X-Who") == std::vector<std::string_view>{"origin"});
  CHECK(outcome->body == "made");
  CHECK(origin.requests() == 1);
}

TEST_CASE("a response that comes before the body is read is handed out") {
  Step early(413);
  early.respond_early = true;
  FaultServer server(Scenario{early});
  const auto outcome = Client({retry(hasty())}).post(server.url(), std::string(8 << 20, 'x'));
  // Closing with the body unread resets the connection: then the response may be lost on the way,
  // and that must be said, not hidden.
  if (outcome) {
    CHECK(outcome->status == 413);
  } else {
    CHECK(outcome.error().maybe_sent());
  }
  CHECK(server.requests() == 1);
}

TEST_CASE("103 and then nothing is no response") {
  Step hints(Fault::Close);
  hints.interims = {{103, {{"Link", "</a>"}}}};
  FaultServer server(Scenario{hints});
  const auto outcome = Client({retry(hasty())}).post(server.url(), "d");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().exchange.sent == Sent::Maybe);
  CHECK(outcome.error().status == 0);
  CHECK(outcome.error().history.stop_reason == Reason::UnsafeToRepeat);
  CHECK(server.requests() == 1);
}

TEST_CASE("interim answers leave nothing behind in the final one") {
  Step step(200, {{"X-Final", "yes"}}, "ok");
  step.interims = {{103, {{"X-Early", "yes"}}}, {102}};
  FaultServer server(Scenario{step});
  const auto outcome = Client::bare().get(server.url());
  REQUIRE(outcome);
  CHECK(outcome->headers.contains("X-Final"));
  CHECK_FALSE(outcome->headers.contains("X-Early"));
}

TEST_CASE("the reason of a status line is kept, where it is one") {
  struct Row {
    const char* line;
    int status;
    const char* reason;
  };
  for (const auto& row :
       std::vector<Row>{{"HTTP/1.1 200 OK", 200, "OK"},
                        {"HTTP/1.0 404 Not  Found, sorry ", 404, "Not  Found, sorry"},
                        {"HTTP/1.1 200 ", 200, ""},
                        {"HTTP/1.1 200", 200, ""},
                        {"HTTP/1.1 200   ", 200, ""},
                        {"HTTP/1.1 503 Caf\xc3\xa9", 503, "Caf\xc3\xa9"},
                        {"HTTP/1.1 200 \x1b[2J", 200, ""}}) {
    CAPTURE(row.line);
    RawServer server([&](int listener) {
      const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      read_until(connection, "\r\n\r\n");
      // What an interim answer is called is not for the final one.
      write_all(connection, "HTTP/1.1 103 Early Hints\r\n\r\n" + std::string(row.line) +
                                "\r\nContent-Length: 0\r\n\r\n");
      ::close(connection);
    });
    const auto outcome = Client::bare().get(server.url());
    REQUIRE(outcome);
    CHECK(outcome->status == row.status);
    CHECK(outcome->reason == row.reason);
  }
}

TEST_CASE("gzip is decoded where it was asked for, whole or not at all") {
  const std::string text(100'000, 'a');
  FaultServer server(Scenario{gzip({200, text})});
  auto request = Request::get(server.url());
  CHECK(Client::bare().send(request)->body != text);
  request.edit_options().compressed = true;
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  CHECK(outcome->body == text);
  CHECK_FALSE(outcome->headers.contains("Content-Encoding"));
  CHECK(server.seen()[1].headers.get("Accept-Encoding") == "gzip");

  request.edit_options().max_body = 50'000;  // of what it becomes, not of what is sent
  const auto error = Client::bare().send(request).error();
  CHECK(error.code == Errc::TooLarge);
  CHECK(error.curl_code == 63);
  CHECK(error.message.ends_with("the response body is larger than 50000 bytes"));
}

TEST_CASE("a gzip body that is none is an error that a retry cannot mend") {
  FaultServer server(Scenario{{200, {{"Content-Encoding", "gzip"}}, "this is no gzip"}});
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  const auto outcome = Client({retry(hasty())}).send(request);
  CHECK(outcome.error().code == Errc::Protocol);
  CHECK(outcome.error().curl_code == 61);
  CHECK(outcome.error().message.ends_with("the gzip body of the response is corrupt"));
  CHECK(server.requests() == 1);
}

TEST_CASE("the stall limit ends a body that stands still, however long the attempt may last") {
  Step slow(Fault::Drip);
  slow.interval = 10s;
  FaultServer server(Scenario{slow});
  auto policy = hasty();
  policy.max_attempts = 1;
  policy.stall_timeout = 100ms;
  const auto outcome = Client({retry(policy)}).get(server.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  CHECK(outcome.error().partial);
  CHECK(history_of(outcome).elapsed < 30s);  // the elapsed time would end it after 60 s
}

TEST_CASE("the elapsed time ends an attempt that has no headers yet, and spares a body") {
  auto policy = hasty();
  policy.max_elapsed_time = 800ms;
  FaultServer late(Scenario{with({200, "late"}, 5s)});
  CHECK(Client({retry(policy)}).get(late.url()).error().code == Errc::Timeout);

  Step slow(Fault::Drip);
  slow.body = std::string(30, 'x');
  slow.interval = 40ms;
  FaultServer dripping(Scenario{slow});
  CHECK(Client({retry(policy)}).get(dripping.url())->body.size() == 30);
}

TEST_CASE("a body in a coding that nobody asked for is no response") {
  struct Row {
    const char* coding;
    bool good;
  };
  for (const auto& row : std::vector<Row>{
           {"identity", true}, {"gzip, gzip", false}, {"foo", false}, {"br, gzip", false}}) {
    CAPTURE(row.coding);
    FaultServer server(Scenario{{200, Headers{{"Content-Encoding", row.coding}}, "0123456789"}});
    auto request = Request::get(server.url());
    request.edit_options().compressed = true;
    const auto outcome = Client::bare().send(request);
    REQUIRE(outcome.has_value() == row.good);
    if (row.good) continue;
    CHECK(outcome.error().code == Errc::Protocol);
    CHECK(outcome.error().curl_code == 61);
    CHECK(outcome.error().permanent);
  }
}
