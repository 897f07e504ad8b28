#include "tests/retry/answers.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace httpretry_test;  // NOLINT

namespace {

RetryPolicy with_rule(ErrorRule rule) {
  RetryPolicy policy;
  policy.retry_on.error_codes = {std::move(rule)};
  return policy;
}

}  // namespace

TEST_CASE("statuses of the standard policy") {
  struct Row {
    int status;
    Class cls;
  };
  for (const auto& row : std::vector<Row>{
           {200, Class::Success},   {204, Class::Success},   {304, Class::Success},
           {301, Class::Success},   {400, Class::Permanent}, {401, Class::Permanent},
           {403, Class::Permanent}, {404, Class::Permanent}, {407, Class::Permanent},
           {408, Class::Transient}, {409, Class::Permanent}, {412, Class::Permanent},
           {413, Class::Permanent}, {421, Class::Transient}, {422, Class::Permanent},
           {425, Class::Transient}, {429, Class::Throttle},  {500, Class::Transient},
           {501, Class::Permanent}, {502, Class::Transient}, {503, Class::Transient},
           {504, Class::Transient}, {505, Class::Permanent}, {507, Class::Permanent},
           {509, Class::Transient}, {511, Class::Permanent}, {599, Class::Transient}}) {
    CAPTURE(row.status);
    const auto result = classified(answer(row.status));
    CHECK(result.cls == row.cls);
    CHECK(to_string(result.rule) == "status " + std::to_string(row.status));
  }
}

// Microsoft.Extensions.Http.Resilience; `standard` leaves out 501 and 505, on purpose.
TEST_CASE("a policy lists 5xx whole where it likes") {
  RetryPolicy policy;
  policy.retry_on.statuses.add(500, 599);
  for (const auto status : {408, 429, 500, 501, 505, 599}) {
    CAPTURE(status);
    const auto cls = classified(answer(status), policy).cls;
    CHECK(cls == (status == 429 ? Class::Throttle : Class::Transient));
  }
  for (const auto status : {400, 404, 409}) {
    CHECK(classified(answer(status), policy).cls == Class::Permanent);
  }
}

TEST_CASE("which answers say that the server did nothing") {
  struct Row {
    Response response;
    bool refused;
  };
  for (const auto& row : std::vector<Row>{{answer(429), true},
                                          {answer(425), true},
                                          {answer(421), true},
                                          {answer(503, {{"Retry-After", "1"}}), true},
                                          {answer(503, {{"Retry-After", "0"}}), true},
                                          {answer(503, {{"Retry-After", "soon"}}), false},
                                          {answer(503), false},
                                          {answer(500, {{"Retry-After", "1"}}), false},
                                          {answer(500), false},
                                          {answer(502), false},
                                          {answer(504), false},
                                          {answer(408), false},
                                          {answer(400, {}, R"({"__type":"SlowDown"})"), true}}) {
    CAPTURE(row.response.status);
    CHECK(classified(row.response).refused == row.refused);
  }
}

TEST_CASE("a 429 says that the server did nothing, whatever class the policy gives it") {
  RetryPolicy policy;
  policy.retry_on.throttle_statuses = StatusSet{};
  policy.retry_on.statuses.add(428, 430);
  const auto plain = classified(answer(429), policy);
  CHECK(plain.cls == Class::Transient);
  CHECK(plain.refused);
  CHECK_FALSE(plain.refused_for_sure);
  CHECK(classified(answer(429, {{"Retry-After", "1"}}), policy).refused_for_sure);
  for (const auto status : {428, 430}) {
    CAPTURE(status);
    CHECK_FALSE(classified(answer(status, {{"Retry-After", "1"}}), policy).refused);
  }
}

TEST_CASE("a 503 that says when to come back is a throttle, and a reset does not say it") {
  const auto told = classified(answer(503, {{"Retry-After", "7"}}));
  CHECK(told.cls == Class::Throttle);
  CHECK(told.server_delay->delay == 7s);
  CHECK(classified(answer(503, {{"x-ratelimit-reset", "7"}})).cls == Class::Transient);
  const auto limited = classified(answer(429, {{"x-ratelimit-reset", "7"}}));
  CHECK(limited.server_delay->delay == 7s);
}

TEST_CASE("a 413 is a throttle if it says when to come back, and final otherwise") {
  const auto told = classified(answer(413, {{"Retry-After", "7"}}));
  CHECK(told.cls == Class::Throttle);
  CHECK(told.refused);
  CHECK(told.server_delay->delay == 7s);
  CHECK(to_string(told.rule) == "error_codes: retry-after 7");
  CHECK(classified(answer(413)).cls == Class::Permanent);
  CHECK(classified(answer(414, {{"Retry-After", "7"}})).cls == Class::Permanent);
}

TEST_CASE("a misdirected request is worth one retry, on a connection of its own") {
  const auto result = classified(answer(421));
  CHECK(result.once);
  CHECK(result.fresh_connection);
}

TEST_CASE("transport errors by kind") {
  struct Row {
    Errc code;
    bool partial;
    const char* rule;
    Class cls;
  };
  for (const auto& row :
       std::vector<Row>{{Errc::Resolve, false, "transport: resolve", Class::Transport},
                        {Errc::Connect, false, "transport: connect", Class::Transport},
                        {Errc::Tls, false, "transport: tls", Class::Transport},
                        {Errc::Timeout, false, "transport: timeout", Class::Transport},
                        {Errc::Send, false, "transport: send", Class::Transport},
                        {Errc::Receive, false, "transport: receive", Class::Transport},
                        {Errc::Receive, true, "transport: partial", Class::Transport},
                        {Errc::Protocol, false, "transport: protocol", Class::Transport},
                        {Errc::InvalidRequest, false, "error: invalid_request", Class::Permanent},
                        {Errc::TooLarge, false, "error: too_large", Class::Permanent},
                        {Errc::Canceled, false, "error: canceled", Class::Permanent},
                        {Errc::Paused, false, "error: paused", Class::Permanent},
                        {Errc::CircuitOpen, false, "error: circuit_open", Class::Permanent},
                        {Errc::RateLimited, false, "error: rate_limited", Class::Permanent},
                        {Errc::QueueFull, false, "error: queue_full", Class::Permanent},
                        {Errc::LocalShortage, false, "error: local_shortage", Class::Permanent},
                        {Errc::Internal, false, "error: internal", Class::Permanent}}) {
    CAPTURE(std::string(row.rule));
    Error error(row.code);
    error.partial = row.partial;
    const auto result = classified(error);
    CHECK(result.cls == row.cls);
    CHECK(to_string(result.rule) == row.rule);

    error.permanent = true;
    CHECK(classified(error).cls == Class::Permanent);
  }
  CHECK(classified(Error(Errc::Canceled)).stop == Reason::Canceled);
  CHECK(classified(Error(Errc::CircuitOpen)).stop == Reason::CircuitOpen);
  CHECK(classified(Error(Errc::Timeout)).timeout);
  CHECK(classified(Error(Errc::Protocol)).once);
}

TEST_CASE("a transport failure that the policy does not name is permanent") {
  RetryPolicy policy;
  policy.retry_on.transport = 1U << static_cast<unsigned>(TransportKind::Resolve);
  CHECK(classified(Error(Errc::Resolve), policy).cls == Class::Transport);
  CHECK(classified(Error(Errc::Connect), policy).cls == Class::Permanent);
}

TEST_CASE("a proxy that refuses to connect us is heard, and the origin saw nothing") {
  struct Row {
    int status;
    Class cls;
  };
  for (const auto& row : std::vector<Row>{{407, Class::Permanent},
                                          {403, Class::Permanent},
                                          {404, Class::Permanent},
                                          {429, Class::Throttle},
                                          {430, Class::Permanent},
                                          {505, Class::Permanent},
                                          {502, Class::Transport},
                                          {503, Class::Transport},
                                          {504, Class::Transport}}) {
    CAPTURE(row.status);
    Error error(Errc::Connect);
    error.from_proxy = true;
    error.status = row.status;
    const auto result = classified(error);
    CHECK(result.cls == row.cls);
    CHECK(result.sent == Sent::Never);
    CHECK(result.status == 0);
    CHECK(to_string(result.rule) == "proxy: status " + std::to_string(row.status));
  }
  Error busy(Errc::Connect);
  busy.from_proxy = true;
  busy.status = 503;
  busy.headers.add("Retry-After", "9");
  CHECK(classified(busy).cls == Class::Throttle);
  CHECK(classified(busy).server_delay->delay == 9s);
}

TEST_CASE("an error after the headers of a response has their status and their delay") {
  Error error(Errc::Receive);
  error.exchange.sent = Sent::Answered;
  error.headers.add("Retry-After", "9");
  for (const auto status : {429, 503}) {
    error.status = status;
    const auto result = classified(error);
    CHECK(result.cls == Class::Transport);
    CHECK(to_string(result.rule) == "transport: receive");
    CHECK(result.status == status);
    CHECK(result.sent == Sent::Answered);
    REQUIRE(result.server_delay);
    CHECK(result.server_delay->delay == 9s);
    CHECK(result.refused_for_sure);
  }
  for (const auto status : {200, 430, 504}) {
    error.status = status;
    CHECK_FALSE(classified(error).server_delay);
    CHECK_FALSE(classified(error).refused);
  }
  error.headers = Headers();
  error.status = 429;
  CHECK(classified(error).refused);
  CHECK_FALSE(classified(error).refused_for_sure);
}

TEST_CASE("a retry needs a new connection if the old one broke") {
  for (const auto code : {Errc::Send, Errc::Receive, Errc::Protocol}) {
    CHECK(classified(Error(code)).fresh_connection);
  }
  for (const auto code : {Errc::Resolve, Errc::Connect, Errc::Tls, Errc::Timeout}) {
    CHECK_FALSE(classified(Error(code)).fresh_connection);
    CHECK_FALSE(classified(Error(code)).once);
  }
  for (const auto status : {422, 429, 503}) {
    CHECK_FALSE(classified(answer(status)).fresh_connection);
  }
}

TEST_CASE("a throttle by its status is refused work if it is a 4xx") {
  RetryPolicy policy;
  policy.retry_on.throttle_statuses.add(400, 599);
  for (const auto status : {400, 499}) CHECK(classified(answer(status), policy).refused);
  for (const auto status : {500, 501, 599}) {
    CHECK_FALSE(classified(answer(status), policy).refused);
  }
}

TEST_CASE("a failure whose body is cut off is no success, whatever a rule says") {
  ErrorRule rule;
  rule.source = ErrorRule::Source::Header;
  rule.selector = "X-Verdict";
  rule.as = Class::Success;
  auto policy = with_rule(rule);
  for (const auto status : {400, 500}) {
    auto response = answer(status, {{"X-Verdict", "fine"}});
    CHECK(classified(response, policy).cls == Class::Success);
    response.incomplete = true;
    CHECK(classified(response, policy).cls == Class::Transport);
    CHECK(to_string(classified(response, policy).rule) == "transport: partial");
  }
  auto moved = answer(399);
  moved.incomplete = true;
  CHECK(classified(moved, policy).cls == Class::Success);
  auto failure = answer(404);
  failure.incomplete = true;
  CHECK(to_string(classified(failure, policy).rule) == "status 404");
  policy.retry_on.transport = 0;
  auto cut = answer(500, {{"X-Verdict", "fine"}});
  cut.incomplete = true;
  CHECK(classified(cut, policy).cls == Class::Permanent);
}

TEST_CASE("an outcome for which a retry is requested is transient if it was final") {
  for (const auto status : {200, 404}) {
    auto response = answer(status);
    response.exchange.retry_requested = true;
    CHECK(classified(response).cls == Class::Transient);
    CHECK(to_string(classified(response).rule) == "retry_if");
  }
  for (const auto status : {429, 503}) {
    auto response = answer(status);
    response.exchange.retry_requested = true;
    CHECK(to_string(classified(response).rule) == "status " + std::to_string(status));
  }
}

TEST_CASE("a refused stream is refused work") {
  Error error(Errc::Receive);
  error.exchange.sent = Sent::Maybe;
  CHECK_FALSE(classified(error).refused);
  error.exchange.refused = true;
  CHECK(classified(error).refused);
}

TEST_CASE("a rule of one's own, on a pointer, a header or an element") {
  ErrorRule json;
  json.status = StatusSet{403};
  json.selector = "/error/*/reason";
  json.in = {"quotaBurst"};
  json.as = Class::Throttle;
  const auto burst = R"({"error":[{"reason":"x"},{"reason":"quotaBurst"}]})";
  const auto result = classified(answer(403, {}, burst), with_rule(json));
  CHECK(result.cls == Class::Throttle);
  CHECK(to_string(result.rule) == "error_codes: /error/*/reason quotaBurst");
  CHECK(classified(answer(400, {}, burst), with_rule(json)).cls == Class::Permanent);

  ErrorRule header;
  header.source = ErrorRule::Source::Header;
  header.selector = "X-Verdict";
  header.as = Class::Success;
  CHECK(classified(answer(500, {{"x-verdict", "any"}}), with_rule(header)).cls == Class::Success);
  CHECK(classified(answer(500), with_rule(header)).cls == Class::Transient);

  ErrorRule xml;
  xml.source = ErrorRule::Source::Xml;
  xml.selector = "Reason";
  xml.in = {"Busy"};
  xml.as = Class::Pending;
  CHECK(classified(answer(409, {}, "<a><b><x:Reason> Busy </x:Reason></b></a>"), with_rule(xml))
            .cls == Class::Pending);
}

TEST_CASE("the first rule that matches wins") {
  RetryPolicy policy;
  ErrorRule first;
  first.selector = "/code";
  first.in = {"SlowDown"};
  first.as = Class::Permanent;
  policy.retry_on.error_codes.insert(policy.retry_on.error_codes.begin(), first);
  CHECK(classified(answer(503, {}, R"({"code":"SlowDown"})"), policy).cls == Class::Permanent);
}

TEST_CASE("pending answers, by status and by what the body says") {
  RetryPolicy policy;
  policy.retry_on.pending.emplace();
  policy.retry_on.pending->statuses = {202};
  CHECK(classified(answer(202), policy).cls == Class::Pending);
  policy.retry_on.pending->json = "/status";
  policy.retry_on.pending->in = {"PENDING", "RUNNING"};
  const auto running =
      classified(answer(202, {{"Retry-After", "3"}}, R"({"status":"RUNNING"})"), policy);
  CHECK(running.cls == Class::Pending);
  CHECK(to_string(running.rule) == "pending RUNNING");
  CHECK(running.server_delay->delay == 3s);
  CHECK(classified(answer(202, {}, R"({"status":"DONE"})"), policy).cls == Class::Success);
  CHECK(classified(answer(202), policy).cls == Class::Success);
}

TEST_CASE("a negative pushback makes any failure permanent") {
  const auto result = classified(answer(503, {{"grpc-retry-pushback-ms", "-1"}}));
  CHECK(result.cls == Class::Permanent);
  CHECK(to_string(result.rule) == "grpc-retry-pushback-ms");
}

TEST_CASE("what a server wrote is fit for a log line") {
  ErrorRule rule;
  rule.selector = "/code";
  const auto body = "{\"code\":\"a\\u001b[31m\\n" + std::string(100, 'x') + "\"}";
  const auto result = classified(answer(400, {}, body), with_rule(rule));
  CHECK(result.rule.code.size() == 64);
  CHECK(result.rule.code.substr(0, 7) == "a?[31m?");
}

TEST_CASE("only the first 64 KiB of a body are looked at") {
  const auto late = "{\"pad\":\"" + std::string(kClassifiedBody, 'x') + R"(","code":"SlowDown"})";
  CHECK(classified(answer(400, {}, late)).cls == Class::Permanent);
  const auto cut = R"({"code":"SlowDown","pad":")" + std::string(kClassifiedBody, 'x');
  CHECK(classified(answer(400, {}, cut)).cls == Class::Throttle);
}
