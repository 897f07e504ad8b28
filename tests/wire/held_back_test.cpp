// Good answers that a rule of the policy reads, on their way to a sink.
#include "sinks.hpp"

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("what a rule of the policy reads is held back until it has spoken") {
  auto policy = hasty();
  PendingRule pending;
  pending.statuses = StatusSet{200};
  pending.json = "/state";
  pending.in = {"running"};
  pending.backoff.initial = 1ms;
  policy.retry_on.pending = pending;
  const Headers json{{"Content-Type", "application/json"}};
  FaultServer server(
      Scenario{{200, json, R"({"state": "running"})"}, {200, json, R"({"state": "done"})"}});
  std::string text;
  auto request = Request::get(server.url());
  request.edit_options().sink = append_to(text);

  const auto outcome = Client({retry(policy)}).send(request);

  REQUIRE(outcome);
  CHECK(text == R"({"state": "done"})");
  CHECK(outcome->body.empty());
  CHECK(outcome->delivered == text.size());
  CHECK(outcome->history.attempts.size() == 2);
}

TEST_CASE("of a large answer that a rule reads, the beginning is held back and the rest is not") {
  const std::string large = "<Data>" + std::string(300'000, 'x') + "</Data>";
  const std::string failed = "<Error><Code>SlowDown</Code></Error>";
  const Headers xml{{"Content-Type", "application/xml"}};
  FaultServer server(Scenario{{200, xml, failed}, {200, xml, large}});
  ClientOptions options;
  options.middlewares = {retry(hasty())};
  options.connection.max_body = 100'000;
  std::string text;
  std::size_t pieces = 0;
  auto request = Request::get(server.url());
  request.edit_options().sink = pass_to([&](std::string_view bytes) {
    text.append(bytes);
    ++pieces;
    return true;
  });

  const auto outcome = Client(options).send(request);

  REQUIRE(outcome);
  CHECK(text == large);
  CHECK(pieces > 1);
  CHECK(outcome->body.empty());
  CHECK(outcome->delivered == large.size());
  CHECK(outcome->history.attempts.size() == 2);
}

TEST_CASE("a large answer that a rule calls a failure never reaches the sink") {
  const std::string large =
      "<Error><Code>SlowDown</Code><Data>" + std::string(300'000, 'x') + "</Data></Error>";
  const Headers xml{{"Content-Type", "text/xml; charset=utf-8"}};
  FaultServer server(Scenario{{200, xml, large}, {200, xml, "<Good/>"}});
  std::string text;
  const auto outcome = get_into(server, append_to(text));
  REQUIRE(outcome);
  CHECK(text == "<Good/>");
  CHECK(outcome->history.attempts.size() == 2);
}

TEST_CASE("what only has xml in the name of its type is not held back") {
  const Headers document{
      {"Content-Type", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"}};
  FaultServer server(Scenario{{200, document, "<Error><Code>SlowDown</Code></Error>"}});
  std::string text;
  const auto outcome = get_into(server, append_to(text));
  REQUIRE(outcome);
  CHECK(text == "<Error><Code>SlowDown</Code></Error>");
  CHECK(outcome->history.attempts.size() == 1);
}

TEST_CASE("a reader that wants no more of what was held back ends the call, and it was sent") {
  const Headers xml{{"Content-Type", "application/xml"}};
  FaultServer server(Scenario{{200, xml, "<Good/>"}});
  const auto outcome = get_into(server, pass_to([](std::string_view) { return false; }));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Canceled);
  CHECK(outcome.error().exchange.sent == Sent::Answered);
  CHECK(outcome.error().status == 200);
  CHECK(outcome.error().message.starts_with("GET http://127.0.0.1"));
}

TEST_CASE("a classify of the user's judges a large response by its beginning, and only once") {
  const std::string large = "good " + std::string(300'000, 'x');
  FaultServer server(Scenario{{200, {}, "bad"}, {200, {}, large}});
  std::vector<std::size_t> sizes;
  RetryOptions options;
  options.classify = [&](const RetryPolicy& policy, const Request&, const Observed& observed) {
    sizes.push_back(observed.body.size());
    auto found = classify(policy, observed);
    if (!observed.body.starts_with("good")) found.cls = Class::Transient;
    return found;
  };
  std::string text;
  auto request = Request::get(server.url());
  request.edit_options().sink = append_to(text);
  request.edit_options().policy = std::make_shared<const RetryPolicy>(hasty());

  const auto outcome = Client({retry(options)}).send(request);

  REQUIRE(outcome);
  CHECK(succeeded(outcome));
  CHECK(text == large);
  CHECK(outcome->history.attempts.size() == 2);
  CHECK(sizes == std::vector<std::size_t>{3, kClassifiedBody});
}
