#include <httpretry/classify.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace std::chrono_literals;
using namespace httpretry;  // NOLINT: the test speaks of little else

namespace {

constexpr WallTime kNow{};

Response answer(int status, Headers headers = {}, std::string body = {}) {
  Response response(status, std::move(body));
  response.headers = std::move(headers);
  return response;
}

Classified classified(const Response& response, const RetryPolicy& policy = RetryPolicy()) {
  const Outcome outcome(response);
  return classify(policy, Observed(outcome, kNow));
}

Classified classified(const Error& error, const RetryPolicy& policy = RetryPolicy()) {
  const Outcome outcome(error);
  return classify(policy, Observed(outcome, kNow));
}

Classified google(int status, const std::string& reason) {
  return classified(
      answer(status, {}, R"({"error":{"errors":[{"domain":"d","reason":")" + reason + R"("}]}})"));
}

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

TEST_CASE("a 503 that says when to come back is a throttle, and a reset does not say it") {
  const auto told = classified(answer(503, {{"Retry-After", "7"}}));
  CHECK(told.cls == Class::Throttle);
  CHECK(told.hint->delay == 7s);
  CHECK(classified(answer(503, {{"x-ratelimit-reset", "7"}})).cls == Class::Transient);
  const auto limited = classified(answer(429, {{"x-ratelimit-reset", "7"}}));
  CHECK(limited.hint->delay == 7s);
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
                        {Errc::CircuitOpen, false, "error: circuit_open", Class::Permanent},
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
  CHECK(classified(busy).hint->delay == 9s);
}

TEST_CASE("a refused stream is refused work") {
  Error error(Errc::Receive);
  error.exchange.sent = Sent::Maybe;
  CHECK_FALSE(classified(error).refused);
  error.exchange.refused = true;
  CHECK(classified(error).refused);
}

// smithy-lang/smithy: restJson1/errors.smithy, aws-restxml, aws-query and ec2-query protocols.
TEST_CASE("where AWS puts its error code") {
  struct Row {
    Headers headers;
    const char* body;
  };
  const std::vector<Row> rows = {
      {{{"X-Amzn-Errortype", "SlowDown"}}, ""},
      {{{"X-Amzn-Errortype", "SlowDown:http://internal.amazon.com/coral/x/"}}, ""},
      {{{"X-Amzn-Errortype", "aws.protocoltests.restjson#SlowDown:http://internal.amazon.com/"}},
       ""},
      {{{"x-amzn-query-error", "SlowDown;Sender"}}, R"({"__type":"com.amazonaws.sqs#Other"})"},
      {{}, R"({"code": "SlowDown"})"},
      {{}, R"({"code": "aws.protocoltests.restjson#SlowDown"})"},
      {{}, R"({"code": "ns#SlowDown:http://internal.amazon.com/"})"},
      {{}, R"({"__type": "SlowDown"})"},
      {{}, R"({"__type": "aws.protocoltests.restjson#SlowDown"})"},
      {{}, R"({"__type": "ns#SlowDown:http://internal.amazon.com/coral/x/"})"},
      {{}, R"({"__type": "ns#SlowDown", "ErrorDetails": [{"__type": "ns#Nested"}]})"},
      {{}, R"({"code": 400, "__type": "SlowDown"})"},
      {{},
       "<ErrorResponse><Error><Type>Sender</Type><Code>SlowDown</Code></Error></ErrorResponse>"},
      {{}, "<Error><Type>Sender</Type><Code>SlowDown</Code><Message>Hi</Message></Error>"},
      {{}, "<Response><Errors><Error><Code>SlowDown</Code></Error></Errors></Response>"},
      {{}, "<?xml version=\"1.0\"?>\n<Error xmlns=\"http://s3\"><Code>SlowDown</Code></Error>"},
      {{}, "<Error><!-- <Code>Other</Code> --><Code><![CDATA[SlowDown]]></Code></Error>"}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.body));
    const auto result = classified(answer(400, row.headers, row.body));
    CHECK(result.cls == Class::Throttle);
    CHECK(to_string(result.rule) == "error_codes: aws SlowDown");
  }
}

TEST_CASE("where AWS does not put its error code") {
  for (const auto* body :
       {R"({"ErrorDetails": [{"__type": "SlowDown"}]})", R"({"error": {"code": "SlowDown"}})",
        R"({"Message": "SlowDown"})", "<Error Code=\"SlowDown\"/>",
        "<Error><!--<Code>SlowDown</Code>--></Error>", "<Other><Code>SlowDown</Code></Other>",
        "<Code>SlowDown</Code>",
        "<!DOCTYPE x [<!ENTITY c \"SlowDown\">]><Error><Code>&c;</Code></Error>",
        "<Error><Code>SlowDown", "SlowDown", "{", "[[[[", "<", "<<<"}) {
    CAPTURE(std::string(body));
    CHECK(classified(answer(400, {}, body)).cls == Class::Permanent);
  }
}

// botocore's RETRYABLE_TRANSIENT_ERRORS and smithy's lists.
TEST_CASE("AWS codes by class") {
  struct Row {
    int status;
    const char* code;
    Class cls;
  };
  for (const auto& row :
       std::vector<Row>{{400, "RequestTimeout", Class::Transient},
                        {400, "RequestTimeoutException", Class::Transient},
                        {400, "PriorRequestNotComplete", Class::Throttle},
                        {400, "Throttling", Class::Throttle},
                        {400, "ThrottlingException", Class::Throttle},
                        {400, "ProvisionedThroughputExceededException", Class::Throttle},
                        {500, "InternalServiceError", Class::Transient},
                        {502, "BadError", Class::Transient},
                        {503, "SlowDown", Class::Throttle},
                        {400, "ValidationException", Class::Permanent},
                        {400, "slowdown", Class::Permanent}}) {
    CAPTURE(std::string(row.code));
    CHECK(classified(answer(row.status, {{"x-amzn-errortype", row.code}})).cls == row.cls);
  }
}

TEST_CASE("S3 fails with a 200 at times") {
  const auto* body = "<?xml version=\"1.0\"?>\n\n<Error><Code>InternalError</Code></Error>";
  CHECK(classified(answer(200, {}, body)).cls == Class::Transient);
  CHECK(classified(answer(200, {}, "<CopyObjectResult/>")).cls == Class::Success);
  CHECK(classified(answer(200, {}, R"({"code":"SlowDown"})")).cls == Class::Success);
}

// googleapiclient/http.py _should_retry_response.
TEST_CASE("Google's reasons beat the status") {
  CHECK(google(403, "userRateLimitExceeded").cls == Class::Throttle);
  CHECK(google(403, "rateLimitExceeded").cls == Class::Throttle);
  CHECK(google(403, "sharingRateLimitExceeded").cls == Class::Throttle);
  CHECK(google(403, "dailyLimitExceeded").cls == Class::Permanent);
  CHECK(google(429, "quotaExceeded").cls == Class::Permanent);
  CHECK(google(403, "insufficientPermissions").cls == Class::Permanent);
  CHECK(google(400, "backendError").cls == Class::Transient);
  CHECK(google(403, "other").cls == Class::Permanent);
  CHECK(google(503, "other").cls == Class::Transient);
  CHECK(classified(answer(403, {}, R"({"error":{"errors":[]}})")).cls == Class::Permanent);
  CHECK(classified(answer(403, {}, "<html>")).cls == Class::Permanent);
  CHECK(to_string(google(403, "rateLimitExceeded").rule) ==
        "error_codes: google rateLimitExceeded");
}

// google/rpc/error_details.proto in its JSON mapping.
TEST_CASE("RetryInfo in a body is a hint") {
  const auto body = [](const std::string& delay) {
    return R"({"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
      {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"},
      {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":")" +
           delay + R"("}]}})";
  };
  const auto result = classified(answer(429, {}, body("34.074824224s")));
  CHECK(result.cls == Class::Throttle);
  CHECK(result.rule.code == "RATE_LIMIT_EXCEEDED");
  CHECK(result.hint->delay == 34074824224ns);
  CHECK(result.hint->source == HintSource::RetryInfo);
  CHECK(result.hint->raw == "34.074824224s");
  for (const auto* bad : {"-1s", "1m", "1.5", "soon", ""}) {
    CHECK_FALSE(classified(answer(429, {}, body(bad))).hint.has_value());
  }
  const auto status_only = R"({"error":{"status":"UNAVAILABLE"}})";
  CHECK(classified(answer(400, {}, status_only)).cls == Class::Transient);
}

// octokit's plugin-throttling; "Best practices" on docs.github.com.
TEST_CASE("GitHub's limits, primary and secondary") {
  const auto* secondary = R"({"message":"You have exceeded a Secondary Rate limit."})";
  const auto told = classified(answer(403, {{"retry-after", "30"}}, secondary));
  CHECK(told.cls == Class::Throttle);
  CHECK(told.hint->delay == 30s);
  const auto untold = classified(answer(403, {}, secondary));
  CHECK(untold.cls == Class::Throttle);
  CHECK(untold.hint->delay == 60s);
  CHECK(untold.hint->at_least);
  const auto primary = classified(answer(429, {{"x-ratelimit-remaining", "0"},
                                               {"x-ratelimit-reset", "1000000100"},
                                               {"date", "Sun, 09 Sep 2001 01:46:40 GMT"}}));
  CHECK(primary.cls == Class::Throttle);
  // The clock of this test is in 1970, more than a day off: the epoch is read against it.
  CHECK(primary.hint->delay == 1000000101s);
  CHECK(classified(answer(403, {{"x-ratelimit-remaining", "4999"}})).cls == Class::Permanent);
  const auto* graphql = R"({"errors":[{"type":"RATE_LIMITED"}]})";
  CHECK(classified(answer(200, {{"x-ratelimit-remaining", "0"}}, graphql)).cls == Class::Throttle);
  CHECK(classified(answer(200, {{"x-ratelimit-remaining", "0"}}, R"({"data":1})")).cls ==
        Class::Success);
}

TEST_CASE("OpenAI's and Stripe's advice overrides the status") {
  for (const auto* name : {"x-should-retry", "stripe-should-retry"}) {
    CHECK(classified(answer(400, {{name, "true"}})).cls == Class::Transient);
    CHECK(classified(answer(429, {{name, "true"}})).cls == Class::Throttle);
    CHECK(classified(answer(503, {{name, "false"}})).cls == Class::Permanent);
    CHECK(classified(answer(503, {{name, "maybe"}})).cls == Class::Transient);
    CHECK(classified(answer(200, {{name, "false"}})).cls == Class::Success);
  }
  const auto* quota = R"({"error":{"type":"insufficient_quota","code":"insufficient_quota"}})";
  CHECK(classified(answer(429, {}, quota)).cls == Class::Permanent);
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
  CHECK(running.hint->delay == 3s);
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
