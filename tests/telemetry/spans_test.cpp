// Spans of a call and its sends, and what they send on.
#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <mutex>
#include <set>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

struct Spans {
  std::vector<SpanPtr> all;  // in the order of their ends: the call last
  TracesOptions options() {
    TracesOptions options;
    options.sink = [this](SpanPtr span) { all.push_back(std::move(span)); };
    return options;
  }
};

std::string text(const Span& span, std::string_view key) {
  for (const auto& attribute : span.attributes()) {
    if (attribute.key != key) continue;
    if (const auto* text = std::get_if<std::string>(&attribute.value)) return *text;
    if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
      return std::to_string(*number);
    }
    return "a number";
  }
  return "-";
}

Client client_of(const Conversation& talk, Spans& spans, std::vector<MiddlewarePtr> chain) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {traces(spans.options())};
  options.random = fixed_random(0.5);
  return Client(options);
}

constexpr auto* kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

}  // namespace

TEST_CASE("500, 500, 200 are three CLIENT spans under one INTERNAL span") {
  Conversation talk;
  Spans spans;
  talk.network->say(Response(500)).say(Response(500)).say(Response(200));
  auto request = Request::get("http://me:pw@x/items/7?sig=s3cr3t");
  request.set_header("traceparent", kParent).set_header("tracestate", "a=1");
  REQUIRE(client_of(talk, spans, {retry(steady_policy()), propagate()}).send(request));
  REQUIRE(spans.all.size() == 4);
  const auto& call = *spans.all.back();
  CHECK(call.kind == Span::Kind::Internal);
  CHECK(call.name() == "httpretry.call");
  CHECK(span_id_hex(call.parent) == "b7ad6b7169203331");
  CHECK(text(call, "httpretry.attempts") == "3");
  CHECK(text(call, "httpretry.stop_reason") == "success");
  CHECK(call.outcome() == Span::Status::Unset);
  const std::string counts[] = {"-", "1", "2"};
  const std::string types[] = {"500", "500", "-"};
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const auto& span = *spans.all.at(i);
    CHECK(span.kind == Span::Kind::Client);
    CHECK(span.trace.hex() == "0af7651916cd43dd8448eb211c80319c");
    CHECK(span.parent == call.id);
    CHECK(span.name() == "GET");
    CHECK(text(span, "http.request.resend_count") == counts[i]);
    CHECK(text(span, "error.type") == types[i]);
    CHECK((span.outcome() == Span::Status::Error) == (i < 2));
    CHECK(text(span, "url.full") == "http://REDACTED:REDACTED@x/items/7?sig=REDACTED");
    CHECK(text(span, "server.address") == "x");
    CHECK(text(span, "server.port") == "80");
    CHECK(text(span, "httpretry.wait") == (i < 2 ? "a number" : "-"));
    // What went out is the id of this span.
    const auto sent = talk.sent(i).headers().get("traceparent");
    CHECK(sent == "00-0af7651916cd43dd8448eb211c80319c-" + span_id_hex(span.id) + "-01");
    CHECK(talk.sent(i).headers().get("tracestate") == "a=1");
  }
  CHECK(spans.all[0]->id != spans.all[1]->id);
}

TEST_CASE("without propagate() a send has an id of its own, not that of the request's parent") {
  Conversation talk;
  Spans spans;
  talk.network->say(Response(500)).say(Response(200));
  auto request = Request::get("http://x/");
  request.set_header("traceparent", kParent);
  REQUIRE(client_of(talk, spans, {retry(steady_policy())}).send(request));
  REQUIRE(spans.all.size() == 3);
  std::set<std::uint64_t> ids{spans.all[2]->parent};
  for (const auto& span : spans.all) ids.insert(span->id);
  CHECK(ids.size() == 4);
}

TEST_CASE("a redirect counts as a send; baggage stays at the origin of the call") {
  Conversation talk;
  Spans spans;
  talk.network->say(redirect_to(302, "http://y/b")).say(Response(200));
  auto request = Request::get("http://x/a");
  request.edit_options().context.set(TraceContext::parse(kParent, "", "user=7").value());
  REQUIRE(client_of(talk, spans, {redirect(), retry(steady_policy()), propagate()}).send(request));
  REQUIRE(spans.all.size() == 3);
  CHECK(text(*spans.all[0], "http.request.resend_count") == "-");
  CHECK(text(*spans.all[1], "http.request.resend_count") == "1");
  CHECK(talk.sent(0).headers().get("baggage") == "user=7");
  CHECK_FALSE(talk.sent(1).headers().contains("baggage"));
  CHECK(talk.sent(1).headers().contains("traceparent"));
}

TEST_CASE("sends of a middleware, and rounds of authentication, count as sends") {
  Conversation talk;
  Spans spans;
  Response rounds(401);
  rounds.exchange.sent = Sent::Answered;
  rounds.exchange.wire_sends = 2;  // as libcurl does Digest within one exchange
  talk.network->say(rounds).say(Response(503)).say(Response(200));
  const auto again =
      middleware("token", [](Request request, Call& call, Next next) -> Task<Outcome> {
        Outcome outcome = co_await next(request, call);
        if (outcome && outcome->status == 401) outcome = co_await next(request, call);
        co_return outcome;
      });
  REQUIRE(client_of(talk, spans, {retry(steady_policy()), again, propagate()}).get("http://x/"));
  REQUIRE(spans.all.size() == 4);
  CHECK(text(*spans.all[0], "http.request.resend_count") == "-");
  CHECK(text(*spans.all[0], "httpretry.wire_sends") == "2");
  CHECK(text(*spans.all[0], "httpretry.attempt") == "1");
  CHECK(text(*spans.all[0], "httpretry.class") == "-");  // the one after it was judged
  CHECK(text(*spans.all[1], "http.request.resend_count") == "2");
  CHECK(text(*spans.all[1], "httpretry.attempt") == "1");
  CHECK(text(*spans.all[1], "httpretry.class") == "transient");
  CHECK(text(*spans.all[2], "http.request.resend_count") == "3");
  for (std::size_t i = 0; i < 3; ++i) {
    const auto sent = TraceContext::from(talk.sent(i).headers());
    REQUIRE(sent);
    CHECK(sent->span == spans.all[i]->id);
    CHECK(spans.all[i]->parent == spans.all[3]->id);
  }
}

TEST_CASE("sends at the same time have the ids that they sent") {
  Conversation talk;
  Spans spans;
  talk.network->say(Response(200), 5s).say(Response(200), 1s);
  const auto both = middleware("both", [](Request request, Call& call, Next next) -> Task<Outcome> {
    auto first = next(request, call);  // both have their headers before either is sent
    auto second = next(request, call);
    Outcome outcome = co_await first;
    outcome = co_await second;
    co_return outcome;
  });
  REQUIRE(client_of(talk, spans, {both, propagate()}).get("http://x/"));
  REQUIRE(spans.all.size() == 3);
  std::set<std::uint64_t> sent;
  for (std::size_t i = 0; i < 2; ++i) {
    sent.insert(TraceContext::from(talk.sent(i).headers())->span);
  }
  CHECK(sent == std::set<std::uint64_t>{spans.all[0]->id, spans.all[1]->id});
}

TEST_CASE("a call that was canceled has spans that are no errors") {
  Conversation talk;
  Spans spans;
  talk.network->say(error_of(Errc::Canceled));
  CHECK_FALSE(client_of(talk, spans, {retry(steady_policy())}).get("http://x/"));
  REQUIRE(spans.all.size() == 2);
  for (const auto& span : spans.all) {
    CHECK(span->outcome() == Span::Status::Unset);
    CHECK(text(*span, "error.type") == "-");
  }
}

TEST_CASE("an error that is no response has its word as error.type") {
  Conversation talk;
  Spans spans;
  talk.network->say(error_of(Errc::Connect));
  CHECK_FALSE(client_of(talk, spans, {}).get("http://x/"));
  REQUIRE(spans.all.size() == 2);
  CHECK(text(*spans.all[0], "error.type") == "connect");
  CHECK(text(*spans.all[0], "http.response.status_code") == "-");
  CHECK(text(*spans.all[0], "httpretry.sent") == "never");
  CHECK(spans.all[1]->outcome() == Span::Status::Error);
}

TEST_CASE("the name has the pattern of the endpoint, not the path") {
  Conversation talk;
  Spans spans;
  talk.network->say(Response(200));
  auto policies = parse_policies(R"({"version": 1, "endpoints": [
    {"name": "items", "match": {"path": "/items/{id}"}, "policy": {}},
    {"name": "plain", "match": {"path": "/plain"}, "policy": {}}]})",
                                 "policy.json");
  auto client = client_of(talk, spans, {retry(std::move(policies))});
  REQUIRE(client.get("http://x/items/7"));
  REQUIRE(client.get("http://x/plain"));
  CHECK(spans.all[0]->name() == "GET /items/{id}");
  CHECK(text(*spans.all[0], "url.template") == "/items/{id}");
  CHECK(spans.all[2]->name() == "GET");
}

TEST_CASE("what the parent did not sample is not recorded, but goes on") {
  Conversation talk;
  Spans spans;
  talk.network->say(Response(200));
  auto request = Request::get("http://x/");
  request.set_header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
  REQUIRE(client_of(talk, spans, {propagate()}).send(request));
  CHECK(spans.all.empty());
  const auto sent = TraceContext::from(talk.sent(0).headers());
  REQUIRE(sent);
  CHECK(sent->trace.hex() == "0af7651916cd43dd8448eb211c80319c");
  CHECK_FALSE(sent->sampled());
}

TEST_CASE("a context whose ids are zero is none") {
  Conversation talk;
  Spans spans;
  talk.network->say(Response(200)).say(Response(200));
  auto request = Request::get("http://x/");
  request.edit_options().context.set(TraceContext());
  REQUIRE(client_of(talk, spans, {propagate()}).send(request));
  CHECK(spans.all.size() == 2);
  CHECK(TraceContext::from(talk.sent(0).headers()));  // a new trace
  REQUIRE(talk.client({propagate()}).send(request));
  CHECK_FALSE(talk.sent(1).headers().contains("traceparent"));
}

TEST_CASE("canceled is no error, and an unknown method is _OTHER") {
  Span span;
  span.method = "BREW";
  span.known_method = false;
  span.error = Errc::Canceled;
  CHECK(span.name() == "HTTP");
  CHECK(span.outcome() == Span::Status::Unset);
  CHECK(text(span, "http.request.method") == "_OTHER");
  CHECK(text(span, "http.request.method_original") == "BREW");
  CHECK(text(span, "error.type") == "-");
}
