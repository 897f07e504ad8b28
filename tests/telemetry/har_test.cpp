// The entries of an archive, byte by byte.
#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// A client in virtual time whose calls an archive records. `id` is that of the latest call.
struct Recorded {
  explicit Recorded(HarOptions how = HarOptions()) : archive(how) {}

  Client client(std::vector<MiddlewarePtr> chain) {
    chain.push_back(on_request("id", [this](Request&, Call& call) { id = call.id(); }));
    ClientOptions options;
    options.middlewares = std::move(chain);
    options.scheduler = talk.clock;
    options.transport = talk.network;
    options.observers = {archive.observer()};
    return Client(options);
  }
  [[nodiscard]] bool has(std::string_view part) const {
    return archive.text().find(part) != std::string::npos;
  }

  Conversation talk;
  Har archive;
  std::uint64_t id = 0;
};

Exchange exchange_with(const Timings& timings) {
  Exchange exchange;
  exchange.sent = Sent::Answered;
  exchange.wire_sends = 1;
  exchange.timings = timings;
  return exchange;
}

}  // namespace

TEST_CASE("an entry of an archive has all parts of a send") {
  Recorded recorded;
  Timings timings;
  timings.resolved = 10ms;
  timings.connected = 30ms;
  timings.secured = 60ms;
  timings.sent = 61ms;
  timings.first_byte = 100ms;
  timings.total = 150ms;
  Response response(200, "1234567");
  response.reason = "Fine";
  response.http_version = "2";
  response.headers.add("Content-Type", "text/plain");
  response.exchange = exchange_with(timings);
  std::ranges::copy(std::string_view("192.0.2.1"), response.exchange.peer.text.begin());
  recorded.talk.network->say(response);
  auto request = Request::post("http://x/a?key=s3cr3t&page=2", std::string("abc"));
  request.set_header("X-Kept", "1");
  REQUIRE(recorded.client({}).send(request));
  CHECK(recorded.archive.entries() == 1);
  const auto entry =
      R"({"startedDateTime":"2023-11-14T22:13:20.000Z","time":150,)"
      R"("request":{"method":"POST","url":"http://x/a?key=REDACTED&page=REDACTED",)"
      R"("httpVersion":"HTTP/2","cookies":[],"headers":[{"name":"X-Kept","value":"1"}],)"
      R"("queryString":[{"name":"key","value":"REDACTED"},{"name":"page","value":"REDACTED"}],)"
      R"("headersSize":-1,"bodySize":3},)"
      R"("response":{"status":200,"statusText":"Fine","httpVersion":"HTTP/2","cookies":[],)"
      R"("headers":[{"name":"Content-Type","value":"text/plain"}],)"
      R"("content":{"size":7,"mimeType":"text/plain"},"redirectURL":"","headersSize":-1,)"
      R"("bodySize":7},"cache":{},)"
      R"("timings":{"blocked":0,"dns":10,"connect":50,"ssl":30,"send":1,"wait":39,"receive":50},)"
      R"("serverIPAddress":"192.0.2.1","comment":"call )" +
      std::to_string(recorded.id) + R"(, sent: answered"})";
  CHECK(recorded.has("\"entries\":[\n" + entry + "\n]}}\n"));
}

TEST_CASE("an entry has the version as browsers write it, and no address of an unknown server") {
  struct Row {
    const char* version;
    const char* shown;
  };
  for (const auto& row : {Row{"", "HTTP/1.1"}, Row{"1.0", "HTTP/1.0"}, Row{"1.1", "HTTP/1.1"},
                          Row{"2", "HTTP/2"}, Row{"3", "HTTP/3"}}) {
    CAPTURE(row.version);
    Recorded recorded;
    Response response(200);
    response.http_version = row.version;
    recorded.talk.network->say(response);
    REQUIRE(recorded.client({}).get("http://x/"));
    const auto version = R"("httpVersion":")" + std::string(row.shown) + R"(","cookies":[])";
    CHECK(recorded.has(R"("url":"http://x/",)" + version));
    CHECK(recorded.has(R"("statusText":"",)" + version));
    CHECK_FALSE(recorded.has("serverIPAddress"));
  }
}

TEST_CASE(
    "a part of the query without a name is hidden, and one without a value has an empty name") {
  Recorded recorded;
  recorded.talk.network->say(Response(200));
  REQUIRE(recorded.client({}).get("http://x/?s3cr3t&a=&=b"));
  CHECK(recorded.has(R"("queryString":[{"name":"REDACTED","value":""},)"
                     R"({"name":"a","value":"REDACTED"},{"name":"","value":"REDACTED"}])"));
}

TEST_CASE("the phases of an entry add up to its time, and a phase that did not happen is -1") {
  struct Row {
    Timings timings;
    const char* time;
    const char* phases;
  };
  std::vector<Row> rows(4);
  // A connection that was reused, after a wait.
  rows[0].timings = {.queued = 2500us, .sent = 5ms, .first_byte = 20ms, .total = 30ms};
  rows[0].time = "32.5";
  rows[0].phases =
      R"("blocked":2.5,"dns":-1,"connect":-1,"ssl":-1,"send":5,"wait":15,"receive":10})";
  // No connection.
  rows[1].timings = {.resolved = 10ms, .total = 40ms};
  rows[1].time = "40";
  rows[1].phases = R"("blocked":0,"dns":10,"connect":-1,"ssl":-1,"send":0,"wait":30,"receive":0})";
  // Without TLS, and without a response.
  rows[2].timings = {.resolved = 10ms, .connected = 25ms, .sent = 27ms, .total = 50ms};
  rows[2].time = "50";
  rows[2].phases = R"("blocked":0,"dns":10,"connect":15,"ssl":-1,"send":2,"wait":23,"receive":0})";
  // Steps in an order that cannot be.
  rows[3].timings = {
      .resolved = 30ms, .connected = 20ms, .sent = 25ms, .first_byte = 28ms, .total = 27ms};
  rows[3].time = "27";
  rows[3].phases = R"("blocked":0,"dns":30,"connect":0,"ssl":-1,"send":0,"wait":0,"receive":0})";
  for (const auto& row : rows) {
    CAPTURE(row.phases);
    Recorded recorded;
    Response response(200);
    response.exchange = exchange_with(row.timings);
    recorded.talk.network->say(response);
    REQUIRE(recorded.client({}).get("http://x/"));
    CHECK(recorded.has(R"("time":)" + std::string(row.time) + ","));
    CHECK(recorded.has(R"("timings":{)" + std::string(row.phases)));
  }
}

TEST_CASE("a body in an archive has at most the size that is set") {
  HarOptions options;
  options.max_body = 1;
  Recorded recorded(options);
  Response encoded(200, "z");
  encoded.headers.add("Content-Encoding", "br");
  recorded.talk.network->say(Response(200, "x")).say(Response(200, "xy")).say(encoded);
  auto client = recorded.client({});
  for (int i = 0; i < 3; ++i) REQUIRE(client.get("http://x/"));
  CHECK(recorded.has(R"("content":{"size":1,"mimeType":"x-unknown","text":"x"})"));
  CHECK(recorded.has(R"("content":{"size":2,"mimeType":"x-unknown"})"));
  CHECK(recorded.has(R"("content":{"size":1,"mimeType":"x-unknown","text":"z","_encoded":true})"));
}

TEST_CASE("the comment of an entry tells the attempt, its result, and what followed") {
  Recorded recorded;
  recorded.talk.network->say(Response(200));
  const auto tells = on_request("tells", [](Request& request, Call& call) {
    const Outcome failed = Error(Errc::Timeout, "no response");
    const auto end = [&](int number, const Attempt& attempt) {
      call.emit(&Observer::exchange_started, request, number);
      call.emit(&Observer::exchange_ended, request, number, failed);
      call.emit(&Observer::attempt_ended, request, attempt);
    };
    Attempt attempt;
    attempt.number = 1;
    attempt.cls = Class::Throttle;
    attempt.rule = "status 429";
    end(11, attempt);
    attempt.retried = true;
    end(12, attempt);
    Exchange exchange;
    exchange.sent = Sent::Maybe;
    exchange.queued_by = QueuedBy::Rate;
    exchange.timings.queued = 250ms;
    attempt.set_exchange(exchange);
    attempt.wait = 2s;
    attempt.server_delay = 1500ms;
    const auto hedge = std::make_shared<Hedge>();
    hedge->of = 3;
    hedge->after = 100ms;
    attempt.hedge = hedge;
    end(13, attempt);
  });
  REQUIRE(recorded.client({retry(steady_policy()), tells}).get("http://x/"));
  CHECK(recorded.archive.entries() == 4);
  const auto attempt_1 =
      R"("comment":"call )" + std::to_string(recorded.id) + ", attempt 1: timeout: no response; ";
  CHECK(recorded.has(attempt_1 + R"(throttle (status 429), sent: never; no retry"})"));
  CHECK(recorded.has(attempt_1 + R"(throttle (status 429), sent: never; retry in 0 s"})"));
  CHECK(recorded.has(attempt_1 +
                     "hedge of attempt 3 after 100 ms; throttle (status 429), sent: maybe; retry "
                     "in 2.00 s (the server asked for 1.50 s)\"}"));
  CHECK(recorded.has(R"("_error":"timeout"})"));
  // Guards held the last one back, so it began to wait before its exchange began.
  CHECK(recorded.has(R"({"startedDateTime":"2023-11-14T22:13:19.750Z","time":250,)"));
  CHECK(recorded.has(R"("timings":{"blocked":250,)"));
}

TEST_CASE("a send that a middleware abandons is in the archive, as canceled") {
  Recorded recorded;
  recorded.talk.network->say(Response(200));
  const auto abandons = on_request("abandons", [](Request& request, Call& call) {
    for (const int number : {11, 12}) call.emit(&Observer::exchange_started, request, number);
  });
  REQUIRE(recorded.client({abandons}).get("http://x/"));
  CHECK(recorded.archive.entries() == 3);
  CHECK(recorded.has(R"("comment":"call )" + std::to_string(recorded.id) +
                     R"(, canceled: ; sent: never"})"));
}

TEST_CASE("a wait within the client does not change when an exchange began") {
  Recorded recorded;
  Timings timings;
  timings.queued = 250ms;
  Response response(200);
  response.exchange = exchange_with(timings);
  response.exchange.queued_by = QueuedBy::MaxInFlight;
  recorded.talk.network->say(response);
  REQUIRE(recorded.client({retry(steady_policy())}).get("http://x/"));
  CHECK(recorded.has(R"({"startedDateTime":"2023-11-14T22:13:20.000Z","time":250,)"));
}
