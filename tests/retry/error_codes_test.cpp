#include "lib/core/retry/error_codes.hpp"
#include "tests/retry/answers.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace httpretry_test;  // NOLINT

namespace {

Classified google(int status, const std::string& reason) {
  return classified(
      answer(status, {}, R"({"error":{"errors":[{"domain":"d","reason":")" + reason + R"("}]}})"));
}

}  // namespace

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
      {{}, "<Error><!-- <Code>Other</Code> --><Code><![CDATA[SlowDown]]></Code></Error>"},
      {{}, "<Error><Code>Slow&#68;o&#x77;n</Code></Error>"}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.body));
    const auto result = classified(answer(400, row.headers, row.body));
    CHECK(result.cls == Class::Throttle);
    CHECK(to_string(result.rule) == "error_codes: aws SlowDown");
  }
}

// aws-query's compatibility header, which the body does not overrule.
TEST_CASE("an AWS code in a header is the code, whatever the body says") {
  const Headers headers{{"x-amzn-query-error", "AWS.SimpleQueueService.NonExistentQueue;Sender"}};
  for (const auto* body : {R"({"__type": "com.amazonaws.sqs#QueueDoesNotExist"})",
                           R"({"__type": "SlowDown"})", R"({"code": "SlowDown"})"}) {
    CHECK(classified(answer(400, headers, body)).cls == Class::Permanent);
  }
}

TEST_CASE("where AWS does not put its error code") {
  for (const auto* body :
       {R"({"ErrorDetails": [{"__type": "SlowDown"}]})", R"({"error": {"code": "SlowDown"}})",
        R"({"Message": "SlowDown"})", "<Error Code=\"SlowDown\"/>",
        "<Error><!--<Code>SlowDown</Code>--></Error>", "<Other><Code>SlowDown</Code></Other>",
        "<Code>SlowDown</Code>",
        "<!DOCTYPE x [<!ENTITY c \"SlowDown\">]><Error><Code>&c;</Code></Error>",
        "<Error><Code>SlowDown", "SlowDown", "{", "[[[[", "<", "<<<",
        "<Error <Code>SlowDown</Code></Error>", "<Error a=\"><Code>SlowDown</Code></Error>",
        "<Error><Code>SlowDown</Code", "<Error><Code><![CDATA[SlowDown</Code></Error>"}) {
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
  CHECK(result.server_delay->delay == 34074824224ns);
  CHECK(result.server_delay->source == ServerDelaySource::RetryInfo);
  CHECK(result.server_delay->raw == "34.074824224s");
  CHECK(classified(answer(429, {}, body("3.000000001s"))).server_delay->delay == 3000000001ns);
  for (const auto* bad : {"-1s", "1m", "1m0s", "100ms", "1.5", "soon", ""}) {
    CHECK_FALSE(classified(answer(429, {}, body(bad))).server_delay.has_value());
  }
  const auto status_only = R"({"error":{"status":"UNAVAILABLE"}})";
  CHECK(classified(answer(400, {}, status_only)).cls == Class::Transient);
}

// Seen from the streaming methods of Firestore and Gemini: the error is an element of the stream.
TEST_CASE("Google's errors are read in an array, too") {
  const auto* body = R"([{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
      {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}])";
  const auto result = classified(answer(400, {}, body));
  CHECK(result.cls == Class::Throttle);
  CHECK(to_string(result.rule) == "error_codes: google RESOURCE_EXHAUSTED");
  REQUIRE(result.server_delay);
  CHECK(result.server_delay->delay == 7s);
  const auto in_array = [](const std::string& error) {
    return classified(answer(403, {}, R"([{"result":1}, {"error":)" + error + "}]"));
  };
  CHECK(in_array(R"({"errors":[{"reason":"userRateLimitExceeded"}]})").cls == Class::Throttle);
  CHECK(in_array(R"({"errors":[{"reason":"dailyLimitExceeded"}]})").cls == Class::Permanent);
  CHECK(in_array(R"({"details":[{"reason":"RATE_LIMIT_EXCEEDED"}]})").cls == Class::Throttle);
  CHECK(in_array(R"({"status":"UNAVAILABLE"})").cls == Class::Transient);
}

// octokit's plugin-throttling; "Best practices" on docs.github.com.
TEST_CASE("GitHub's limits, primary and secondary") {
  const auto* secondary = R"({"message":"You have exceeded a Secondary Rate limit."})";
  const auto told = classified(answer(403, {{"retry-after", "30"}}, secondary));
  CHECK(told.cls == Class::Throttle);
  CHECK(told.server_delay->delay == 30s);
  CHECK(to_string(told.rule) == "error_codes: github retry-after");
  // Any server may send this; it is no rule of GitHub's.
  const auto any = classified(answer(429, {{"retry-after", "30"}}));
  CHECK(any.cls == Class::Throttle);
  CHECK(any.server_delay->delay == 30s);
  CHECK(to_string(any.rule) == "status 429");
  const auto untold = classified(answer(403, {}, secondary));
  CHECK(untold.cls == Class::Throttle);
  CHECK(untold.server_delay->delay == 60s);
  CHECK(untold.server_delay->at_least);
  const auto primary = classified(answer(429, {{"x-ratelimit-remaining", "0"},
                                               {"x-ratelimit-reset", "1000000100"},
                                               {"date", "Sun, 09 Sep 2001 01:46:40 GMT"}}));
  CHECK(primary.cls == Class::Throttle);
  // The clock of this test is in 1970, more than a day off: the epoch is read against it.
  CHECK(primary.server_delay->delay == 1000000101s);
  CHECK(classified(answer(403, {{"x-ratelimit-remaining", "4999"}})).cls == Class::Permanent);
  const auto* graphql = R"({"errors":[{"type":"RATE_LIMITED"}]})";
  CHECK(classified(answer(200, {{"x-ratelimit-remaining", "0"}}, graphql)).cls == Class::Throttle);
  CHECK(classified(answer(200, {{"x-ratelimit-remaining", "0"}}, R"({"data":1})")).cls ==
        Class::Success);
}

TEST_CASE("the bodies of good responses are read only where a rule needs them") {
  struct Row {
    ErrorRule::Family family;
    Headers headers;
    bool reads;
  };
  const Headers xml{{"Content-Type", "application/xml"}};
  const Headers json{{"Content-Type", "application/json"}};
  const Headers used_up{{"Content-Type", "application/json"}, {"x-ratelimit-remaining", "0"}};
  using Family = ErrorRule::Family;
  for (const auto& row :
       {Row{Family::Aws, xml, true}, Row{Family::Aws, json, false}, Row{Family::Google, xml, false},
        Row{Family::Google, json, false}, Row{Family::Openai, xml, false},
        Row{Family::Stripe, json, false}, Row{Family::Github, json, false},
        Row{Family::Github, xml, false}, Row{Family::Github, used_up, true}}) {
    CAPTURE(std::string(to_string(row.family)));
    RetryOn retry_on;
    retry_on.error_codes = {ErrorRule(row.family)};
    CHECK(policy::must_read_body(retry_on, 200, row.headers) == row.reads);
  }
}

TEST_CASE("which types of bodies the rules for XML and JSON read") {
  const auto reads = [](const ErrorRule& rule, int status, const Headers& headers) {
    RetryOn retry_on;
    retry_on.error_codes = {rule};
    return policy::must_read_body(retry_on, status, headers);
  };
  const auto type = [](const char* value) { return Headers{{"Content-Type", value}}; };
  const ErrorRule aws(ErrorRule::Family::Aws);
  for (const auto* xml : {"application/xml", "text/xml; charset=utf-8", "Application/Atom+XML"}) {
    CHECK(reads(aws, 200, type(xml)));
    CHECK_FALSE(reads(aws, 201, type(xml)));
  }
  const auto* document = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
  for (const auto* other : {document, "application/json", "text/plain", ""}) {
    CHECK_FALSE(reads(aws, 200, type(other)));
  }

  ErrorRule custom;
  custom.selector = "/code";
  for (const auto* json : {"application/json", "application/problem+json; a=b", ""}) {
    CHECK(reads(custom, 200, type(json)));
  }
  CHECK_FALSE(reads(custom, 200, type("text/xml")));
  custom.source = ErrorRule::Source::Xml;
  for (const auto* xml : {"text/xml", ""}) CHECK(reads(custom, 200, type(xml)));
  CHECK_FALSE(reads(custom, 200, type("application/json")));
  custom.status = StatusSet{201};
  CHECK(reads(custom, 201, type("text/xml")));
  CHECK_FALSE(reads(custom, 200, type("text/xml")));
  custom.source = ErrorRule::Source::Header;
  custom.selector = "X-Verdict";
  CHECK(reads(custom, 201, {{"x-verdict", "any"}}));
  CHECK_FALSE(reads(custom, 201, type("text/xml")));
  CHECK_FALSE(reads(custom, 200, {{"x-verdict", "any"}}));
  for (const auto status : {408, 429, 503}) CHECK(reads(custom, status, {}));  // no success

  RetryOn polls;
  polls.error_codes.clear();
  polls.pending.emplace().statuses = {202};
  CHECK(policy::must_read_body(polls, 202, type("text/plain")));
  CHECK_FALSE(policy::must_read_body(polls, 200, type("application/json")));
  polls.pending->json = "/status";
  CHECK(policy::must_read_body(polls, 202, type("application/json")));
  CHECK_FALSE(policy::must_read_body(polls, 202, type("text/plain")));
}

// googleQuotaErrors.ts of gemini-cli. The bodies are those of the Gemini API.
TEST_CASE("a quota of a day at Google is final, whatever else the body says") {
  struct Row {
    const char* quotas;
    Class cls;
  };
  constexpr auto* kPerDay = R"({"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"})";
  const std::string more = R"(,{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier"})";
  const auto both = kPerDay + more;
  const auto other_order = more.substr(1) + "," + kPerDay;
  for (const auto& row : {Row{kPerDay, Class::Permanent},
                          {both.c_str(), Class::Permanent},
                          {other_order.c_str(), Class::Permanent},
                          {R"({"quotaId":"DailyRequests"})", Class::Permanent},
                          {more.c_str() + 1, Class::Throttle},
                          {R"({"quotaMetric":"requests_PerDay"})", Class::Throttle},
                          {R"({"quotaId":7})", Class::Throttle},
                          {"", Class::Throttle}}) {
    CAPTURE(std::string(row.quotas));
    const auto error =
        R"({"error":{"code":429,"status":"RESOURCE_EXHAUSTED","errors":[{"reason":"rateLimitExceeded"}],
      "details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[)" +
        std::string(row.quotas) +
        R"(]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38s"}]}})";
    for (const auto& body : {error, "[" + error + "]"}) {
      const auto result = classified(answer(429, {}, body));
      CHECK(result.cls == row.cls);
      CHECK(result.server_delay.has_value() == (row.cls == Class::Throttle));
    }
    CHECK(classified(answer(200, {}, error)).cls == Class::Success);
  }
  const auto daily = classified(
      answer(429, {}, R"({"error":{"details":[{"violations":[{"quotaId":"APerDay"}]}]}})"));
  CHECK(to_string(daily.rule) == "error_codes: google APerDay");
}

// "Claude API errors" in Anthropic's documentation.
TEST_CASE("Anthropic's spending limit is final, and its overload is not") {
  RetryPolicy policy;
  policy.retry_on.error_codes = {ErrorRule(ErrorRule::Family::Anthropic)};
  const auto classify_it = [&](const Response& response) { return classified(response, policy); };
  const auto error = [](const std::string& members) {
    return R"({"type":"error","error":{)" + members + R"(},"request_id":"req_1"})";
  };
  const auto limit =
      error(R"("type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"})");
  CHECK(classify_it(answer(429, {}, limit)).cls == Class::Permanent);
  CHECK(to_string(classify_it(answer(429, {}, limit)).rule) ==
        "error_codes: anthropic enforced_spend_limit_reached");
  const auto rate =
      classify_it(answer(429, {{"retry-after", "7"}}, error(R"("type":"rate_limit_error")")));
  CHECK(rate.cls == Class::Throttle);
  CHECK(rate.server_delay->delay == 7s);
  const auto overload = classify_it(answer(529, {}, error(R"("type":"overloaded_error")")));
  CHECK(overload.cls == Class::Transient);
  CHECK(to_string(overload.rule) == "error_codes: anthropic overloaded_error");
  CHECK(classify_it(answer(400, {}, error(R"("type":"invalid_request_error")"))).cls ==
        Class::Permanent);
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
