// The response of a fallback in metrics, logs and traces.
#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace httpretry;

TEST_CASE("a fallback is counted and marked, and the failure stays visible") {
  const Conversation talk;
  talk.network->say(Response(200)).say(Response(503));
  const auto numbers = metrics();
  std::vector<std::string> lines;
  std::vector<SpanPtr> calls;
  TracesOptions tracing;
  tracing.sink = [&](SpanPtr span) {
    if (span->kind == Span::Kind::Internal) calls.push_back(std::move(span));
  };
  ClientOptions options;
  options.middlewares = {
      fallback([](const Request&, const Outcome&, Call&) { return std::optional(Response(200)); }),
      retry(steady_policy())};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {numbers, traces(tracing),
                       json_log([&](std::string_view line) { lines.emplace_back(line); })};
  Client client(options);
  CHECK_FALSE(client.get("http://x/")->from_fallback);
  CHECK(client.get("http://x/")->from_fallback);

  const auto taken = numbers->snapshot();
  CHECK(taken.sum("httpretry_fallbacks_total") == 1);
  CHECK(taken.sum("httpretry_call_duration_seconds", {{"stop_reason", "attempts_exhausted"}}) == 1);

  const auto marked = [](const std::string& line) {
    return line.find(R"("fallback":true)") != std::string::npos;
  };
  CHECK(std::ranges::count_if(lines, marked) == 1);
  CHECK(marked(lines.back()));
  CHECK(lines.back().find(R"("stop_reason":"attempts_exhausted")") != std::string::npos);

  REQUIRE(calls.size() == 2);
  const auto has_mark = [](const SpanPtr& span) {
    return std::ranges::any_of(span->attributes(), [](const SpanAttribute& attribute) {
      return attribute.key == "httpretry.fallback" &&
             std::get_if<bool>(&attribute.value) != nullptr;
    });
  };
  CHECK_FALSE(has_mark(calls[0]));
  CHECK(has_mark(calls[1]));
  CHECK(calls[1]->outcome() == Span::Status::Error);
}
