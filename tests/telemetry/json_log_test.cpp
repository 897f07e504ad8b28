// The lines of the log, byte by byte.
#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// The lines of one call, of which `act` is a part. The call begins an hour after the clock.
struct Logged {
  Logged(std::vector<MiddlewarePtr> chain, const Request& request,
         const std::function<void(Request&, Call&)>& act) {
    chain.push_back(on_request("acts", [this, act](Request& sent, Call& call) {
      id = std::to_string(call.id());
      act(sent, call);
    }));
    talk.clock->advance(1h);
    ClientOptions options;
    options.middlewares = std::move(chain);
    options.scheduler = talk.clock;
    options.transport = talk.network;
    options.observers = {json_log([this](std::string_view line) { lines.emplace_back(line); })};
    talk.network->say(Response(200));
    outcome = Client(options).send(request);
  }
  // Returns how a line with this event begins.
  [[nodiscard]] std::string begin(std::string_view event) const {
    return R"({"time":"2023-11-14T23:13:20.000Z","event":")" + std::string(event) + R"(","call":)" +
           id + ",";
  }

  Conversation talk;
  std::string id;
  std::vector<std::string> lines;
  Outcome outcome = Response(0);
};

}  // namespace

TEST_CASE("each event of a call is a line of the log") {
  const Logged logged({}, Request::get("http://x/"), [](Request& request, Call& call) {
    const Time now = call.scheduler().now();
    const Time soon = now + 1500ms;
    call.emit(&Observer::redirected, Request::get("http://me:pw@y/b?key=s3cr3t"));
    call.emit(&Observer::hedge_started, request, 2, Duration(100ms));
    call.emit(&Observer::hedge_refused, HedgeRefused::Busy);
    call.emit(&Observer::held_back, QueuedBy::Rate, soon);
    call.emit(&Observer::held_back, QueuedBy::Concurrency, kNever);
    CircuitChange circuit;
    circuit.key = "http://x";
    circuit.from = Circuit::Open;
    circuit.to = Circuit::HalfOpen;
    circuit.why = "a probe";
    circuit.dry_run = true;
    call.emit(&Observer::circuit_changed, circuit);
    PauseBegun pause;
    pause.key = "http://x";
    pause.until = soon;
    pause.source = "retry-after";
    call.emit(&Observer::paused, pause);
    call.emit(&Observer::resumed, std::string_view("http://x"));
    LimitChange limit;
    limit.key = "http://x";
    limit.from = 20;
    limit.to = 18;
    call.emit(&Observer::limit_changed, limit);
    SharedStateChange change;
    change.place = "redis://h:6379/0";
    call.emit(&Observer::shared_state_changed, change);
    call.emit(&Observer::shed, Error(Errc::RateLimited, "too long a wait"));
  });
  REQUIRE(logged.lines.size() == 13);  // the last two are those of the send and the call
  CHECK(logged.lines[0] == logged.begin("redirect") + R"("method":"GET","url":"http://y/b"})");
  CHECK(logged.lines[1] == logged.begin("hedge") + R"("attempt":2,"after_ms":100})");
  CHECK(logged.lines[2] == logged.begin("hedge_refused") + R"("reason":"busy"})");
  CHECK(logged.lines[3] == logged.begin("held_back") + R"("by":"rate","for_ms":1500})");
  CHECK(logged.lines[4] == logged.begin("held_back") + R"("by":"concurrency"})");
  CHECK(logged.lines[5] ==
        logged.begin("circuit") +
            R"("key":"http://x","from":"open","to":"half_open","why":"a probe","dry_run":true})");
  CHECK(logged.lines[6] ==
        logged.begin("pause") + R"("key":"http://x","for_ms":1500,"source":"retry-after"})");
  CHECK(logged.lines[7] == logged.begin("resume") + R"("key":"http://x"})");
  CHECK(logged.lines[8] == logged.begin("limit") + R"("key":"http://x","from":20,"to":18})");
  CHECK(logged.lines[9] ==
        logged.begin("shared_state") + R"("degraded":false,"place":"redis://h:6379/0","why":""})");
  CHECK(logged.lines[10] ==
        logged.begin("refused") + R"("error":"rate_limited","message":"too long a wait"})");
}

TEST_CASE("the line of a send and that of its call, without the middleware retry") {
  auto request = Request::post("http://x/a?key=s3cr3t", std::string("abc"));
  const Logged logged({}, request, [](Request& sent, Call& call) {
    Response response(204);
    response.http_version = "2";
    auto& exchange = response.exchange;
    exchange.sent = Sent::Answered;
    exchange.queued_by = QueuedBy::MaxInFlight;
    exchange.reused_connection = true;
    exchange.body_sent = 3;
    exchange.body_received = 7;
    exchange.timings = {.queued = 2500us,
                        .resolved = 10ms,
                        .connected = 30ms,
                        .secured = 60ms,
                        .sent = 61ms,
                        .first_byte = 100ms,
                        .total = 150ms};
    std::ranges::copy(std::string_view("2001:db8::1"), exchange.peer.text.begin());
    exchange.peer.port = 443;
    call.emit(&Observer::exchange_started, sent, 11);
    call.emit(&Observer::exchange_ended, sent, 11, Outcome(response));
    call.emit(&Observer::exchange_started, sent, 12);
    call.emit(&Observer::exchange_ended, sent, 12, Outcome(Error(Errc::Connect, "refused")));
  });
  REQUIRE(logged.outcome);
  REQUIRE(logged.lines.size() == 4);
  CHECK(logged.lines[0] ==
        logged.begin("send") +
            R"("exchange":11,"attempt":null,"method":"POST","url":"http://x/a",)"
            R"("peer":"[2001:db8::1]:443","status":204,"error":null,"http_version":"2",)"
            R"("timings_ms":{"queued":2.5,"resolved":10,"connected":30,"secured":60,"sent":61,)"
            R"("first_byte":100,"total":150},"queued_by":"max_in_flight",)"
            R"("reused_connection":true,"body_sent":3,"body_received":7,"sent":"answered",)"
            R"("decision":null})");
  CHECK(logged.lines[1] ==
        logged.begin("send") +
            R"("exchange":12,"attempt":null,"method":"POST","url":"http://x/a","peer":null,)"
            R"("status":null,"error":"connect","message":"refused","http_version":null,)"
            R"("timings_ms":{"queued":0,"resolved":0,"connected":0,"secured":0,"sent":0,)"
            R"("first_byte":0,"total":0},"queued_by":null,"reused_connection":false,)"
            R"("body_sent":0,"body_received":0,"sent":"never","decision":null})");
  CHECK(logged.lines[3] ==
        logged.begin("call") +
            R"("method":"POST","url":"http://x/a","endpoint":null,"policy":null,"status":200,)"
            R"("error":null,"attempts":1,"stop_reason":"success","elapsed_ms":0})");
}

TEST_CASE("the line of an attempt that was not sent, and that of a send that was judged") {
  const auto act = [](Request& request, Call& call) {
    Attempt attempt;
    attempt.number = 9;
    attempt.error = Errc::Connect;
    attempt.error_message = "no route";
    attempt.cls = Class::Transport;
    attempt.rule = "transport connect";
    attempt.retried = true;
    attempt.wait = 1500ms;
    attempt.backoff = 1s;
    attempt.budget_left = 7;
    const auto hedge = std::make_shared<Hedge>();
    hedge->of = 3;
    attempt.hedge = hedge;
    attempt.race = Race::Lost;
    call.emit(&Observer::attempt_ended, request, attempt);
  };
  const Logged logged({retry(steady_policy())}, Request::get("http://x/"), act);
  REQUIRE(logged.lines.size() == 3);
  CHECK(logged.lines[0] ==
        logged.begin("attempt") +
            R"("attempt":9,"method":"GET","url":"http://x/","status":null,"error":"connect",)"
            R"("message":"no route","sent":"never","class":"transport",)"
            R"("rule":"transport connect","decision":"retry","wait_ms":1500,"backoff_ms":1000,)"
            R"("server_delay_ms":null,"budget_left":7,"hedge_of":3,"lost":true})");
  CHECK(logged.lines[1].starts_with(logged.begin("send") + R"("exchange":1,"attempt":1,)"));
  CHECK(logged.lines[1].ends_with(R"("decision":"stop","wait_ms":null,"backoff_ms":null,)"
                                  R"("server_delay_ms":null,"budget_left":null})"));
}

TEST_CASE("a send that a middleware abandons is a line of the log, as canceled") {
  const Logged logged({}, Request::get("http://x/"), [](Request& request, Call& call) {
    for (const int number : {11, 12}) call.emit(&Observer::exchange_started, request, number);
  });
  REQUIRE(logged.lines.size() == 4);
  CHECK(logged.lines[0].starts_with(logged.begin("send") + R"("exchange":1,)"));
  CHECK(logged.lines[1].starts_with(logged.begin("send") + R"("exchange":11,)"));
  CHECK(logged.lines[2].starts_with(logged.begin("send") + R"("exchange":12,)"));
  CHECK(logged.lines[2].find(R"("status":null,"error":"canceled","message":"",)") !=
        std::string::npos);
  CHECK(logged.lines[3].starts_with(logged.begin("call")));
}

TEST_CASE("a decision is in the line of the last send of its attempt") {
  const auto act = [](Request& request, Call& call) {
    for (const int number : {11, 12, 13}) {
      call.emit(&Observer::exchange_started, request, number);
      call.emit(&Observer::exchange_ended, request, number, Outcome(Response(503)));
    }
    call.emit(&Observer::attempt_ended, request, Attempt());
  };
  const Logged logged({retry(steady_policy())}, Request::get("http://x/"), act);
  REQUIRE(logged.lines.size() == 5);
  for (const std::size_t i : {0U, 1U, 2U}) {
    CHECK(logged.lines[i].starts_with(logged.begin("send") + R"("exchange":1)" +
                                      std::to_string(i + 1) + ","));
    CHECK(logged.lines[i].ends_with(R"("decision":null})") == (i < 2));
  }
}

TEST_CASE("a log and an archive of the same calls do not disturb each other") {
  const Conversation talk;
  talk.network->say(Response(200));
  std::vector<std::string> lines;
  Har archive;
  ClientOptions options;
  options.middlewares = {on_request("abandons", [](Request& request, Call& call) {
    for (const int number : {11, 12}) call.emit(&Observer::exchange_started, request, number);
  })};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {json_log([&](std::string_view line) { lines.emplace_back(line); }),
                       archive.observer()};
  REQUIRE(Client(options).get("http://x/"));
  CHECK(lines.size() == 4);
  CHECK(archive.entries() == 3);
}

TEST_CASE("the line of a call that failed has no status") {
  const auto fails = on_outcome("fails", [](const Request&, Outcome& outcome, Call&) {
    outcome = Error(Errc::Protocol, "odd");
  });
  const Logged logged({fails}, Request::get("http://x/"), [](Request&, Call&) {});
  REQUIRE(logged.lines.size() == 2);
  CHECK(logged.lines[1].starts_with(
      logged.begin("call") +
      R"("method":"GET","url":"http://x/","endpoint":null,"policy":null,"status":null,)"
      R"("error":"protocol","message":"odd","attempts":1,"stop_reason":")"));
}

TEST_CASE("a log without a function for its lines is refused") {
  CHECK_THROWS_AS(static_cast<void>(json_log(nullptr)), std::invalid_argument);
}
