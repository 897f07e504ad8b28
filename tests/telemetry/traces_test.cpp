// Tests how traces() and propagate() use their options and the trace context of a request, and the
// times and attributes of spans.
#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Shown = std::vector<std::string>;

// A client in virtual time whose calls are traced.
struct Traced {
  Client client(std::vector<MiddlewarePtr> chain, TracesOptions how = TracesOptions()) {
    how.sink = [this](SpanPtr span) { spans.push_back(std::move(span)); };
    ClientOptions options;
    options.middlewares = std::move(chain);
    options.scheduler = talk.clock;
    options.transport = talk.network;
    options.observers = {traces(std::move(how))};
    return Client(options);
  }

  Conversation talk;
  std::vector<SpanPtr> spans;  // in the order of their ends
};

// Returns "KEY=VALUE" for each attribute.
Shown attributes_of(const std::vector<SpanAttribute>& attributes) {
  Shown all;
  for (const auto& attribute : attributes) {
    std::ostringstream line;
    line << attribute.key << "=";
    std::visit([&](const auto& value) { line << std::boolalpha << value; }, attribute.value);
    all.push_back(line.str());
  }
  return all;
}

// Returns a request that continues a trace whose id ends with these 16 digits.
Request request_in_trace(std::string_view low_digits, std::string_view flags) {
  auto request = Request::get("http://x/");
  request.set_header("traceparent", "00-0af7651916cd43dd" + std::string(low_digits) +
                                        "-b7ad6b7169203331-" + std::string(flags));
  return request;
}

}  // namespace

TEST_CASE("a span of a send has all attributes that are known, and no others") {
  Span span;
  span.method = "GET";
  CHECK(attributes_of(span.attributes()) ==
        Shown{"http.request.method=GET", "httpretry.sent=never"});
  span.judged = true;
  span.exchange.wire_sends = 1;
  CHECK(attributes_of(span.attributes()) ==
        Shown{"http.request.method=GET", "httpretry.sent=never", "httpretry.class=success"});

  span.url = *Url::parse("https://[2001:db8::1]:8443/items/7?sig=s3cr3t&page=1");
  ResolvedPolicy policy;
  policy.path = "/items/{id}";
  span.policy = std::make_shared<const ResolvedPolicy>(policy);
  span.status = 503;
  span.resend_count = 1;
  span.attempt = 3;
  span.http_version = "2";
  span.exchange.sent = Sent::Maybe;
  span.exchange.wire_sends = 2;
  std::ranges::copy(std::string_view("192.0.2.1"), span.exchange.peer.text.begin());
  span.exchange.peer.port = 443;
  span.cls = Class::Transient;
  span.rule = "status 503";
  span.wait = 1500ms;
  span.backoff = 1s;
  span.server_delay = 2s;
  span.budget_left = 0;
  span.hedge_of = 1;
  span.lost = true;
  CHECK(span.name() == "GET /items/{id}");
  const Shown begin{"http.request.method=GET", "server.address=2001:db8::1", "server.port=8443"};
  const Shown end{"url.template=/items/{id}",
                  "http.response.status_code=503",
                  "error.type=503",
                  "http.request.resend_count=1",
                  "network.peer.address=192.0.2.1",
                  "network.peer.port=443",
                  "network.protocol.version=2",
                  "httpretry.attempt=3",
                  "httpretry.sent=maybe",
                  "httpretry.wire_sends=2",
                  "httpretry.class=transient",
                  "httpretry.rule=status 503",
                  "httpretry.wait=1.5",
                  "httpretry.backoff=1",
                  "httpretry.server_delay=2",
                  "httpretry.budget_left=0",
                  "httpretry.hedge_of=1",
                  "httpretry.lost=true"};
  for (const bool hides : {false, true}) {
    CAPTURE(hides);
    span.hide_query = hides;
    auto all = begin;
    all.push_back("url.full=https://[2001:db8::1]:8443/items/7?sig=REDACTED&page=" +
                  std::string(hides ? "REDACTED" : "1"));
    all.insert(all.end(), end.begin(), end.end());
    CHECK(attributes_of(span.attributes()) == all);
  }
}

TEST_CASE("the status of a span of a send is an error from 400 on") {
  Span span;
  span.method = "GET";
  for (const int status : {0, 200, 399, 400, 599}) {
    CAPTURE(status);
    span.status = status;
    CHECK((span.outcome() == Span::Status::Error) == (status >= 400));
  }
  span.status = 200;
  span.error = Errc::Receive;
  CHECK(span.outcome() == Span::Status::Error);
  CHECK(attributes_of(span.attributes())[2] == "error.type=receive");
}

TEST_CASE("a span of a call has its policy, its reason and its type of error") {
  Span span;
  span.kind = Span::Kind::Internal;
  span.attempts = 2;
  span.end = span.start + 1500ms;
  CHECK(attributes_of(span.attributes()) ==
        Shown{"httpretry.attempts=2", "httpretry.stop_reason=success", "httpretry.elapsed=1.5"});
  ResolvedPolicy policy;
  policy.preset = "gcs";
  policy.endpoint = "items";
  span.policy = std::make_shared<const ResolvedPolicy>(policy);
  span.stop_reason = Reason::BudgetExhausted;
  span.from_fallback = true;
  const Shown end{"httpretry.attempts=2", "httpretry.stop_reason=budget_exhausted",
                  "httpretry.fallback=true", "httpretry.elapsed=1.5"};
  for (const int status : {0, 503}) {
    for (const auto* name : {"", "careful"}) {
      CAPTURE(status);
      CAPTURE(name);
      span.status = status;
      policy.name = name;
      span.policy = std::make_shared<const ResolvedPolicy>(policy);
      Shown all{"httpretry.policy=" + std::string(*name == '\0' ? "gcs" : "careful"),
                "httpretry.endpoint=items"};
      all.insert(all.end(), end.begin(), end.end());
      all.emplace_back(status == 0 ? "error.type=budget_exhausted" : "error.type=503");
      CHECK(attributes_of(span.attributes()) == all);
    }
  }
  span.stop_reason = Reason::Canceled;
  CHECK(span.outcome() == Span::Status::Unset);
}

TEST_CASE("spans begin and end with their calls and sends") {
  Traced traced;
  traced.talk.network->say(Response(503), 2s).say(Response(200), 3s);
  REQUIRE(traced.client({retry(steady_policy())}).get("http://x/"));
  REQUIRE(traced.spans.size() == 3);
  const auto began = WallTime(1'700'000'000s);
  const auto check_times = [&](std::size_t index, Duration start, Duration end) {
    CAPTURE(index);
    CHECK(traced.spans[index]->start == began + start);
    CHECK(traced.spans[index]->end == began + end);
  };
  check_times(0, 0s, 2s);
  check_times(1, 3s, 6s);
  check_times(2, 0s, 6s);
  for (const auto& span : traced.spans) CHECK(span->events.empty());
  CHECK(traced.spans[2]->parent == 0);
}

TEST_CASE("a wait before a send is an event of its span") {
  Traced traced;
  Response response(200);
  response.exchange.sent = Sent::Answered;
  response.exchange.wire_sends = 1;
  response.exchange.timings.queued = 2500ms;
  response.exchange.queued_by = QueuedBy::MaxInFlight;
  traced.talk.network->say(response);
  REQUIRE(traced.client({retry(steady_policy())}).get("http://x/"));
  REQUIRE(traced.spans.size() == 2);
  REQUIRE(traced.spans[0]->events.size() == 1);
  const auto& event = traced.spans[0]->events[0];
  CHECK(event.name == "queued");
  CHECK(event.at == traced.spans[0]->start);
  CHECK(attributes_of(event.attributes) ==
        Shown{"httpretry.queued=2.5", "httpretry.queued_by=max_in_flight"});
}

TEST_CASE("sends that a middleware abandons end with the call, as canceled") {
  Traced traced;
  traced.talk.network->say(Response(200), 2s);
  const auto abandons = on_request("abandons", [](Request& request, Call& call) {
    for (const int number : {11, 12, 13}) call.emit(&Observer::exchange_started, request, number);
  });
  REQUIRE(traced.client({abandons}).get("http://x/"));
  REQUIRE(traced.spans.size() == 5);
  CHECK(traced.spans[0]->status == 200);
  CHECK(traced.spans[0]->resend_count == 3);  // the three are in flight
  CHECK(traced.spans[4]->kind == Span::Kind::Internal);
  for (const int i : {1, 2, 3}) {
    CAPTURE(i);
    const auto& span = *traced.spans[static_cast<std::size_t>(i)];
    CHECK(span.resend_count == i - 1);
    CHECK(span.error == Errc::Canceled);
    CHECK(span.end == traced.spans[4]->end);
  }
}

TEST_CASE("a decision belongs to the last send of its attempt, with what its guards held back") {
  Traced traced;
  traced.talk.network->say(Response(200));
  const auto tells = on_request("tells", [](Request& request, Call& call) {
    for (const int number : {11, 12}) {
      call.emit(&Observer::exchange_started, request, number);
      call.emit(&Observer::exchange_ended, request, number, Outcome(Response(429)));
    }
    Exchange exchange;
    exchange.queued_by = QueuedBy::Rate;
    exchange.timings.queued = 250ms;
    Attempt attempt;
    attempt.set_exchange(exchange);
    attempt.cls = Class::Throttle;
    call.emit(&Observer::attempt_ended, request, attempt);
  });
  REQUIRE(traced.client({retry(steady_policy()), tells}).get("http://x/"));
  REQUIRE(traced.spans.size() == 4);
  CHECK_FALSE(traced.spans[0]->judged);
  CHECK(traced.spans[0]->events.empty());
  CHECK(traced.spans[1]->judged);
  CHECK(traced.spans[1]->cls == Class::Throttle);
  CHECK(traced.spans[1]->hedge_of == 0);
  CHECK(traced.spans[1]->resend_count == 0);  // what ended before it did not reach the wire
  REQUIRE(traced.spans[1]->events.size() == 1);
  CHECK(attributes_of(traced.spans[1]->events[0].attributes) ==
        Shown{"httpretry.queued=0.25", "httpretry.queued_by=rate"});
  CHECK(traced.spans[2]->judged);
  CHECK(traced.spans[2]->cls == Class::Success);
}

TEST_CASE("only known methods are shown, those of the options if there are any") {
  const auto name_of_send = [](const char* method, std::vector<std::string> known) {
    Traced traced;
    traced.talk.network->say(Response(200));
    TracesOptions options;
    options.known_methods = std::move(known);
    REQUIRE(traced.client({}, options).send(Request(method, "http://x/")));
    return traced.spans.at(0)->name();
  };
  for (const auto* method :
       {"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "QUERY", "TRACE", "CONNECT"}) {
    CHECK(name_of_send(method, {}) == method);
  }
  CHECK(name_of_send("BREW", {}) == "HTTP");
  CHECK(name_of_send("BREW", {"GET", "BREW"}) == "BREW");
  CHECK(name_of_send("POST", {"GET", "BREW"}) == "HTTP");
}

TEST_CASE("a share of the trace ids is sampled, and the decision of a parent if that counts") {
  struct Row {
    const char* low_digits;
    const char* flags;
    bool parent_based;
    double ratio;
    bool sampled;
  };
  // Only the lower 56 bits of an id are random.
  const Row rows[] = {
      {"ff80000000000000", "00", false, 0.5, false}, {"ff7ffffffffff000", "00", false, 0.5, true},
      {"ff7ffffffffff000", "01", false, 0, false},   {"ffffffffffff0000", "00", false, 1, true},
      {"ff7ffffffffff000", "00", true, 1, false},    {"ff7ffffffffff000", "01", true, 0, true},
      {"0000000000000000", "01", false, 0, false},   {"0000000000000000", "00", false, 0.1, true},
  };
  for (const auto& row : rows) {
    CAPTURE(row.low_digits);
    CAPTURE(row.ratio);
    Traced traced;
    traced.talk.network->say(Response(200));
    TracesOptions options;
    options.parent_based = row.parent_based;
    options.sample_ratio = row.ratio;
    REQUIRE(
        traced.client({propagate()}, options).send(request_in_trace(row.low_digits, row.flags)));
    CHECK(traced.spans.size() == (row.sampled ? 2U : 0U));
    const auto sent = TraceContext::from(traced.talk.sent(0).headers());
    REQUIRE(sent);
    CHECK(sent->sampled() == row.sampled);
  }
}

TEST_CASE("options of traces that cannot be used are refused") {
  TracesOptions options;
  CHECK_THROWS_WITH_AS(static_cast<void>(traces(options)), "traces() needs a sink for the spans",
                       std::invalid_argument);
  options.sink = [](const SpanPtr&) {};
  for (const double ratio : {-0.001, 1.001, std::numeric_limits<double>::quiet_NaN()}) {
    options.sample_ratio = ratio;
    CHECK_THROWS_WITH_AS(static_cast<void>(traces(options)),
                         "TracesOptions::sample_ratio must be between 0 and 1",
                         std::invalid_argument);
  }
  for (const double ratio : {0.0, 1.0}) {
    options.sample_ratio = ratio;
    CHECK_NOTHROW(static_cast<void>(traces(options)));
  }
}

TEST_CASE("a call that one observer traces is not traced by a second one") {
  Traced traced;
  traced.talk.network->say(Response(200));
  int others = 0;
  ClientOptions options;
  options.scheduler = traced.talk.clock;
  options.transport = traced.talk.network;
  options.observers = {traces([&](SpanPtr span) { traced.spans.push_back(std::move(span)); }),
                       traces([&](const SpanPtr&) { ++others; })};
  REQUIRE(Client(options).get("http://x/"));
  CHECK(traced.spans.size() == 2);
  CHECK(others == 0);
}

TEST_CASE("a request passes on the trace that it brings, and nothing that is invalid") {
  Traced traced;
  traced.talk.network->say(Response(200));
  const auto sent_of = [&](std::size_t index) { return traced.talk.sent(index).headers(); };
  auto request = request_in_trace("8448eb211c80319c", "01");
  request.set_header("tracestate", "A").set_header("baggage", "no pair");
  REQUIRE(traced.client({propagate()}).send(request));
  CHECK_FALSE(sent_of(0).contains("tracestate"));
  CHECK_FALSE(sent_of(0).contains("baggage"));
  CHECK(TraceContext::from(sent_of(0))->trace.hex() == "0af7651916cd43dd8448eb211c80319c");

  // A context whose trace is zero does not hide the header.
  request.edit_options().context.set(TraceContext());
  REQUIRE(traced.client({propagate()}).send(request));
  CHECK(TraceContext::from(sent_of(1))->trace.hex() == "0af7651916cd43dd8448eb211c80319c");

  // Without traces(), the context itself is sent.
  const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  auto given = TraceContext::parse(parent, "a=1", "b=2").value();
  auto plain = Request::get("http://x/");
  plain.edit_options().context.set(given);
  REQUIRE(traced.talk.client({propagate()}).send(plain));
  CHECK(sent_of(2)["traceparent"] == parent);
  CHECK(sent_of(2)["tracestate"] == "a=1");
  CHECK(sent_of(2)["baggage"] == "b=2");
  given.span = 0;
  plain.edit_options().context.set(given);
  REQUIRE(traced.talk.client({propagate()}).send(plain));
  CHECK_FALSE(sent_of(3).contains("traceparent"));
}

TEST_CASE("only one span takes the id that was sent, if the same headers are sent again") {
  Traced traced;
  traced.talk.network->say(Response(200));
  const auto thrice =
      middleware("thrice", [](Request request, Call& call, Next next) -> Task<Outcome> {
        Outcome outcome = co_await next(request, call);
        outcome = co_await next(request, call);
        outcome = co_await next(request, call);
        co_return outcome;
      });
  REQUIRE(traced.client({propagate(), thrice}).get("http://x/"));
  REQUIRE(traced.spans.size() == 4);
  CHECK(traced.spans[0]->id == TraceContext::from(traced.talk.sent(0).headers())->span);
  CHECK(traced.talk.sent(2).headers()["traceparent"] ==
        traced.talk.sent(0).headers()["traceparent"]);
  CHECK(traced.spans[1]->id != traced.spans[0]->id);
  CHECK(traced.spans[2]->id != traced.spans[0]->id);
  CHECK(traced.spans[2]->id != traced.spans[1]->id);
}
