// What other clients are configured with, as policies.
#include <httpretry/policy/policy_import.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/retry/classify.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

ResolvedPolicy found(const ImportedPolicies& imported, const std::string& url) {
  return imported.policies.find("POST", Url::parse(url).value());
}

std::string lines(const ImportedPolicies& imported) {
  std::string all;
  for (const auto& problem : imported.problems) all += to_string(problem) + "\n";
  return all;
}

std::string grpc_error(std::string_view json) {
  const auto result = import_grpc_service_config(json, "s.json");
  return result ? "none" : result.error().message;
}

std::string with_retry(const std::string& retry) {
  return R"({"methodConfig": [{"name": [{"service": "a.B"}], "retryPolicy": )" + retry + "}]}";
}

std::string retry_with(const std::string& key, const std::string& value) {
  const auto of = [&](const char* name, const char* usual) {
    return "\"" + std::string(name) + "\": " + (key == name ? value : usual);
  };
  return with_retry("{" + of("maxAttempts", "3") + ", " + of("initialBackoff", "\"0.1s\"") + ", " +
                    of("maxBackoff", "\"1s\"") + ", " + of("backoffMultiplier", "2") + ", " +
                    of("retryableStatusCodes", "[\"UNAVAILABLE\"]") + "}");
}

Class judged(const RetryPolicy& policy, const Response& response) {
  const Outcome outcome(response);
  return classify(policy, Observed(outcome, WallTime())).cls;
}

}  // namespace

TEST_CASE("a gRPC service config becomes a policy for each method's path") {
  const auto imported = import_grpc_service_config(R"({
  "methodConfig": [
    { "name": [ { "service": "pets.v1.Pets", "method": "Get" }, { "service": "toys.Toys" } ],
      "timeout": "20s",
      "retryPolicy": { "maxAttempts": 4, "initialBackoff": "0.25s", "maxBackoff": "8s",
                       "backoffMultiplier": 1.5,
                       "retryableStatusCodes": [ "UNAVAILABLE", 8 ] } },
    { "name": [ { "service": "pets.v1.Pets" } ], "timeout": "1.5s" }
  ],
  "retryThrottling": { "maxTokens": 12, "tokenRatio": 0.25 }
})",
                                                   "s.json")
                            .value();
  CHECK(lines(imported).empty());
  CHECK(parse_policies(imported.json, "again.json").value() == imported.policies);

  const auto get = found(imported, "https://any/pets.v1.Pets/Get");
  CHECK(get.endpoint == "pets.v1.Pets/Get");
  const auto& policy = *get.policy;
  CHECK(policy.max_attempts == 4);
  CHECK(policy.max_elapsed_time == 20s);
  CHECK(policy.backoff.initial == 250ms);
  CHECK(policy.backoff.max_interval == 8s);
  CHECK(policy.backoff.multiplier == 1.5);
  CHECK(policy.backoff.jitter == Backoff::Jitter::Range);
  CHECK(policy.backoff.low == 0.8);
  CHECK(policy.backoff.high == 1.2);
  CHECK(policy.repeat == Repeat::Always);
  CHECK(policy.retry_on.statuses == StatusSet{502, 503, 504});
  CHECK(policy.retry_on.throttle_statuses == StatusSet{429});
  CHECK(policy.retry_on.covers(TransportKind::Connect));
  CHECK_FALSE(policy.retry_on.covers(TransportKind::Timeout));
  CHECK(policy.budget.kind == BudgetPolicy::Kind::Grpc);
  CHECK(policy.budget.capacity == 12'000);
  CHECK(policy.budget.refill == 250);
  CHECK(policy.server_delay.headers == std::vector{ServerDelaySource::GrpcRetryPushback});
  CHECK(policy.server_delay.combine == ServerDelayPolicy::Combine::Server);

  CHECK(*found(imported, "http://any/toys.Toys/Any").policy == policy);
  const auto other = found(imported, "http://any/pets.v1.Pets/Put");
  CHECK(other.endpoint == "pets.v1.Pets");
  CHECK(other.policy->max_attempts == 1);
  CHECK(other.policy->max_elapsed_time == 1500ms);
  CHECK(found(imported, "http://any/others.Others/Any").policy->max_attempts == 1);
}

TEST_CASE("a status code is heard in a header, in JSON and in the HTTP status") {
  const auto imported =
      import_grpc_service_config(
          retry_with("retryableStatusCodes",
                     "[\"unavailable\", \"DEADLINE_EXCEEDED\", \"RESOURCE_EXHAUSTED\", 10]"),
          "s.json")
          .value();
  const auto policy = found(imported, "http://any/a.B/c").policy;
  Response trailers_only(200);
  trailers_only.headers = {{"content-type", "application/grpc"}, {"grpc-status", "14"}};
  CHECK(judged(*policy, trailers_only) == Class::Transient);
  trailers_only.headers = {{"content-type", "application/grpc"}, {"grpc-status", "8"}};
  CHECK(judged(*policy, trailers_only) == Class::Throttle);
  trailers_only.headers = {{"content-type", "application/grpc"}, {"grpc-status", "0"}};
  CHECK(judged(*policy, trailers_only) == Class::Success);
  Response json(400, R"({"error": {"code": 409, "status": "ABORTED"}})");
  json.headers = {{"content-type", "application/json"}};
  CHECK(judged(*policy, json) == Class::Transient);
  json.body = R"({"error": {"status": "INVALID_ARGUMENT"}})";
  CHECK(judged(*policy, json) == Class::Permanent);
  for (const auto status : {409, 502, 503, 504}) {
    CHECK(judged(*policy, Response(status)) == Class::Transient);
  }
  CHECK(judged(*policy, Response(429)) == Class::Throttle);
  CHECK(judged(*policy, Response(500)) == Class::Permanent);
  CHECK(policy->retry_on.covers(TransportKind::Timeout));
}

TEST_CASE("each status code of gRPC has its number and its HTTP statuses") {
  struct Row {
    const char* name;
    StatusSet statuses;
    StatusSet throttles;
  };
  const Row rows[] = {
      {"CANCELLED", {499}, {}},
      {"UNKNOWN", {500}, {}},
      {"INVALID_ARGUMENT", {400}, {}},
      {"DEADLINE_EXCEEDED", {504}, {}},
      {"NOT_FOUND", {404}, {}},
      {"ALREADY_EXISTS", {409}, {}},
      {"PERMISSION_DENIED", {403}, {}},
      {"RESOURCE_EXHAUSTED", {}, {429}},
      {"FAILED_PRECONDITION", {400}, {}},
      {"ABORTED", {409}, {}},
      {"OUT_OF_RANGE", {400}, {}},
      {"UNIMPLEMENTED", {501}, {}},
      {"INTERNAL", {500}, {}},
      {"UNAVAILABLE", {502, 503, 504}, {429}},
      {"DATA_LOSS", {500}, {}},
      {"UNAUTHENTICATED", {401}, {}},
  };
  int number = 0;
  for (const auto& row : rows) {
    ++number;
    for (const auto& code : {"\"" + std::string(row.name) + "\"", std::to_string(number)}) {
      CAPTURE(code);
      const auto config = retry_with("retryableStatusCodes", "[" + code + "]");
      const auto imported = import_grpc_service_config(config, "s.json").value();
      const auto on = found(imported, "http://any/a.B/c").policy->retry_on;
      CHECK(on.statuses == row.statuses);
      CHECK(on.throttle_statuses == row.throttles);
      const auto timeout = 1U << static_cast<unsigned>(TransportKind::Timeout);
      const auto is = [&row](std::string_view name) { return row.name == name; };
      auto transport = 0U;
      if (is("DEADLINE_EXCEEDED")) transport = timeout;
      if (is("UNAVAILABLE")) transport = 0xFFU - timeout;
      CHECK(unsigned{on.transport} == transport);
      CHECK(on.error_codes.at(0).in == std::vector{std::to_string(number)});
      CHECK(on.error_codes.at(1).in == std::vector<std::string>{row.name});
    }
  }
}

TEST_CASE("the limits of a gRPC retry policy are within what is allowed") {
  const auto two = import_grpc_service_config(retry_with("maxAttempts", "2"), "s.json").value();
  CHECK(lines(two).empty());
  CHECK(found(two, "http://any/a.B/c").policy->max_attempts == 2);
  const auto constant =
      import_grpc_service_config(retry_with("initialBackoff", "\"1s\""), "s.json").value();
  CHECK(lines(constant).empty());
  CHECK(found(constant, "http://any/a.B/c").policy->backoff.initial == 1s);
  const auto five = import_grpc_service_config(retry_with("maxAttempts", "5"), "s.json").value();
  CHECK(lines(five).empty());
  CHECK(found(five, "http://any/a.B/c").policy->max_attempts == 5);
  const auto equal =
      import_grpc_service_config(retry_with("backoffMultiplier", "1"), "s.json").value();
  CHECK(lines(equal).empty());
  CHECK(found(equal, "http://any/a.B/c").policy->backoff.multiplier == 1);
  const auto unnamed =
      import_grpc_service_config(R"({"methodConfig": [{"name": []}]})", "s.json").value();
  CHECK(unnamed.policies.policy_count() == 0);
}

TEST_CASE("a budget of gRPC has a thousand tokens at most, and three decimal places") {
  struct Row {
    const char* ratio;
    std::int64_t refill;
    bool is_rounded;
  };
  const Row rows[] = {
      {"0.001", 1, false},          {"0.123", 123, false},
      {"1000", 1'000'000, false},   {"0.1239999999995", 124, false},
      {"0.1230000005", 123, false}, {"0.123000002", 123, true},
      {"0.1239", 123, true},
  };
  for (const auto& row : rows) {
    CAPTURE(row.ratio);
    const auto config = R"({"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2,
        "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
        "retryableStatusCodes": [14]}}],
        "retryThrottling": {"maxTokens": 1000, "tokenRatio": )" +
                        std::string(row.ratio) + "}}";
    const auto imported = import_grpc_service_config(config, "s.json").value();
    const auto budget = found(imported, "http://any/a/b").policy->budget;
    CHECK(budget.capacity == 1'000'000);
    CHECK(budget.refill == row.refill);
    const auto said = lines(imported);
    CHECK((said.find("counts to three decimal places") != std::string::npos) == row.is_rounded);
    CHECK(said.empty() != row.is_rounded);
  }
  CHECK(
      grpc_error(R"({"methodConfig": [], "retryThrottling": {"maxTokens": 9, "tokenRatio": 1001}})")
          .find("1001 is out of range: greater than 0, and at most 1000") != std::string::npos);
}

TEST_CASE(
    "the config of all methods becomes the default, and a name with odd signs a literal path") {
  const auto imported = import_grpc_service_config(R"({"methodConfig": [
      {"name": [{}], "timeout": "3s"}, {"name": [{"service": "*", "method": "{a}"}], "timeout": "4s"}]})",
                                                   "s.json")
                            .value();
  CHECK(found(imported, "http://any/a/b").policy->max_elapsed_time == 3s);
  CHECK(found(imported, "http://any/*/%7Ba%7D").policy->max_elapsed_time == 4s);
}

TEST_CASE("a hedging policy of gRPC becomes one without a budget of its own, for all methods") {
  const auto imported = import_grpc_service_config(R"({"methodConfig": [
      {"name": [{"service": "a"}], "hedgingPolicy":
          {"maxAttempts": 4, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE"]}},
      {"name": [{"service": "b"}], "hedgingPolicy": {"maxAttempts": 9}},
      {"name": [{"service": "c"}], "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.000s",
          "nonFatalStatusCodes": [], "surprise": 1}}]})",
                                                   "s.json")
                            .value();
  CHECK(lines(imported) ==
        "s.json:4:69: warning: /methodConfig/1/hedgingPolicy/maxAttempts: gRPC makes 5 at most\n"
        "s.json:6:50: warning: /methodConfig/2/hedgingPolicy/surprise: is not imported\n");
  const auto slow = found(imported, "http://any/a/m").policy;
  REQUIRE(slow->hedge);
  CHECK(slow->hedge->after == 500ms);
  CHECK(slow->hedge->quantile == 0);
  CHECK(slow->hedge->max_hedges == 3);
  CHECK(slow->hedge->methods.empty());
  CHECK_FALSE(slow->hedge->budget);
  CHECK(slow->max_attempts == 4);
  CHECK(slow->repeat == Repeat::Always);
  CHECK(slow->backoff.kind == Backoff::Kind::None);
  CHECK(slow->retry_on.throttle_statuses.contains(429));
  CHECK(slow->retry_on.statuses.contains(503));
  CHECK_FALSE(slow->retry_on.statuses.contains(500));
  const auto at_once = found(imported, "http://any/b/m").policy;
  CHECK(at_once->hedge->after == 0ms);
  CHECK(at_once->hedge->max_hedges == 4);
  CHECK(at_once->max_attempts == 5);
  CHECK_FALSE(at_once->retry_on.statuses.contains(503));
  CHECK_FALSE(found(imported, "http://any/c/m").policy->retry_on.statuses.contains(503));
}

TEST_CASE("a method of gRPC is retried or hedged") {
  CHECK(grpc_error(R"({"methodConfig": [{"name": [{}],
      "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s",
                      "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]},
      "hedgingPolicy": {"maxAttempts": 2}}]})")
            .find("/methodConfig/0/hedgingPolicy: a method has a retryPolicy or a hedgingPolicy, "
                  "not both") != std::string::npos);
}

TEST_CASE("what gRPC has and we have not is named") {
  const auto imported = import_grpc_service_config(R"({
  "loadBalancingConfig": [],
  "methodConfig": [
    {"name": [{"service": "a"}], "waitForReady": true},
    {"name": [{"service": "b"}],
     "retryPolicy": {"maxAttempts": 9, "initialBackoff": "2s", "maxBackoff": "1s",
                     "backoffMultiplier": 0.5, "retryableStatusCodes": ["UNAVAILABLE"],
                     "surprise": 1}},
    {"timeout": "1s"}],
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1239}
})",
                                                   "s.json")
                            .value();
  CHECK(lines(imported) ==
        "s.json:2:26: warning: /loadBalancingConfig: is not imported\n"
        "s.json:4:50: warning: /methodConfig/0/waitForReady: is not imported\n"
        "s.json:6:37: warning: /methodConfig/1/retryPolicy/maxAttempts: gRPC makes 5 at most\n"
        "s.json:6:58: warning: /methodConfig/1/retryPolicy/initialBackoff: is greater than "
        "maxBackoff, so every wait is maxBackoff\n"
        "s.json:7:43: warning: /methodConfig/1/retryPolicy/backoffMultiplier: waits cannot shrink "
        "here: 1 is used\n"
        "s.json:8:34: warning: /methodConfig/1/retryPolicy/surprise: is not imported\n"
        "s.json:9:5: warning: /methodConfig/2: it has no \"name\", so it applies to no method\n"
        "s.json:10:54: warning: /retryThrottling/tokenRatio: counts to three decimal places, as in "
        "gRPC\n");
  const auto policy = found(imported, "http://any/b/c").policy;
  CHECK(policy->max_attempts == 5);
  CHECK(policy->backoff.initial == 1s);
  CHECK(policy->backoff.multiplier == 1);
  CHECK(policy->budget.refill == 123);
}

TEST_CASE("a service config that gRPC would refuse is refused, with all its problems") {
  CHECK(grpc_error("{") ==
        "s.json:1:2: expected a key in double quotes, found the end of the text");
  CHECK(grpc_error("[]") == "s.json:1:1: expected an object, found an array");
  CHECK(grpc_error("{}") == "s.json:1:1: missing key \"methodConfig\": there is nothing to import");
  CHECK(grpc_error(with_retry("{}")).find("missing key \"maxAttempts\"") != std::string::npos);
  CHECK(grpc_error(with_retry("{}")).find("missing key \"maxBackoff\"") != std::string::npos);
  struct Row {
    const char* key;
    const char* value;
    const char* message;
  };
  const Row rows[] = {
      {"maxAttempts", "1", "1 is not a number of attempts; expected at least 2"},
      {"maxAttempts", "2.5", "2.5 is not a number of attempts"},
      {"maxAttempts", "\"3\"", "expected a number, found \"3\""},
      {"initialBackoff", "\"0s\"", "\"0s\" is not a time in seconds, greater than 0"},
      {"initialBackoff", "\"100ms\"", "\"100ms\" is not a time in seconds"},
      {"initialBackoff", "\"1m\"", "\"1m\" is not a time in seconds"},
      {"maxBackoff", "\"-1s\"", "\"-1s\" is not a time in seconds"},
      {"maxBackoff", "1", "expected a duration such as \"1.5s\", found 1"},
      {"maxBackoff", "\"99999999999s\"", "\"99999999999s\" is longer than 365 days"},
      {"backoffMultiplier", "0", "0 is out of range: greater than 0"},
      {"retryableStatusCodes", "[]", "an empty list retries nothing"},
      {"retryableStatusCodes", "[\"BUSY\"]", "\"BUSY\" is not a status code that can be retried"},
      {"retryableStatusCodes", "[0]", "0 is not a status code that can be retried"},
      {"retryableStatusCodes", "[1e999]", "1e999 is out of range"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.value);
    const auto message = grpc_error(retry_with(row.key, row.value));
    CAPTURE(message);
    CHECK(message.find("/methodConfig/0/retryPolicy/" + std::string(row.key)) != std::string::npos);
    CHECK(message.find(row.message) != std::string::npos);
  }
  CHECK(grpc_error(R"({"methodConfig": [{"name": [{"service": "a"}, {"service": "a"}]}]})") ==
        "s.json:1:47: /methodConfig/0/name/1: it is also named on line 1, column 29");
  CHECK(grpc_error(R"({"methodConfig": [{"name": [{"method": "a"}]}]})") ==
        "s.json:1:29: /methodConfig/0/name/0: a method without its service");
  CHECK(grpc_error(R"({"methodConfig": [], "retryThrottling": {"maxTokens": 1001}})")
            .find("1001 is out of range: greater than 0, and at most 1000") != std::string::npos);
}

TEST_CASE("an AWS profile becomes the policy of the hosts of AWS") {
  const auto imported = import_aws_config(
                            "# mine\n[default]\nmax_attempts = 2\n\n[profile busy]\n"
                            "Retry_Mode = adaptive   # slower\nmax_attempts=7\n"
                            "s3 =\n  max_attempts = 99\n",
                            "config", "busy")
                            .value();
  CHECK(lines(imported).empty());
  for (const auto* const url : {"https://s3.eu-west-1.amazonaws.com/",
                                "https://x.amazonaws.com.cn/", "https://a.api.aws/"}) {
    const auto policy = found(imported, url);
    CHECK(policy.name == "aws");
    CHECK(policy.preset == "aws-adaptive");
    CHECK(policy.policy->adaptive);
    CHECK(policy.policy->max_attempts == 7);
  }
  CHECK(*found(imported, "https://elsewhere/").policy == RetryPolicy());
  CHECK(parse_policies(imported.json, "again.json").value() == imported.policies);
  // `aws configure --profile "my app"` writes single quotes.
  for (const auto* const section : {"[profile 'my app']", "[profile \"my app\"]"}) {
    const auto text = std::string(section) + "\nmax_attempts = 7\n";
    const auto of_app = import_aws_config(text, "config", "my app").value();
    CHECK(found(of_app, "https://a.api.aws/").policy->max_attempts == 7);
  }
}

TEST_CASE("each retry mode of AWS has its policy") {
  const auto of_mode = [](const std::string& mode) {
    return import_aws_config("[default]\nretry_mode = " + mode + "\n", "config").value();
  };
  CHECK(found(of_mode("standard"), "https://s3.amazonaws.com/").preset == "aws-standard");
  CHECK(found(of_mode("adaptive"), "https://s3.amazonaws.com/").preset == "aws-adaptive");
  const auto legacy = of_mode("legacy");
  const auto policy = found(legacy, "https://s3.amazonaws.com/").policy;
  CHECK(policy->max_attempts == 5);
  CHECK(policy->budget.kind == BudgetPolicy::Kind::None);
  CHECK(policy->backoff.max_interval == kForever);
  CHECK(policy->backoff.initial == 1s);
  CHECK(policy->backoff.multiplier == 2);
  CHECK(policy->backoff.jitter == Backoff::Jitter::Full);
  CHECK(lines(legacy).find("config:2:14: warning: /retry_mode: legacy differs between the SDKs") ==
        0);
  const auto only_attempts = import_aws_config("[default]\nmax_attempts = 2\n", "config").value();
  CHECK(found(only_attempts, "https://s3.amazonaws.com/").preset == "aws-standard");
  CHECK(found(only_attempts, "https://s3.amazonaws.com/").policy->max_attempts == 2);
  const auto one = import_aws_config("[default]\nmax_attempts = 1\t; once\n", "config").value();
  CHECK(found(one, "https://s3.amazonaws.com/").policy->max_attempts == 1);
}

TEST_CASE("the environment of AWS says the same in its own words") {
  const auto imported =
      import_aws_environment("PATH=/bin\nexport AWS_RETRY_MODE='standard'\r\nAWS_MAX_ATTEMPTS=4\n",
                             "environment")
          .value();
  CHECK(found(imported, "https://s3.amazonaws.com/").policy->max_attempts == 4);
  CHECK(lines(imported).empty());
  // Variables of other programs in the output of `env`.
  const auto among_others =
      import_aws_environment(
          "FETCH_TIMEOUT=5\nBASH_FUNC_module%%=() {  eval `modulecmd bash $*`\n}\n"
          "AWS_MAX_ATTEMPTS=4\n",
          "environment")
          .value();
  CHECK(lines(among_others).empty());
  CHECK(found(among_others, "https://s3.amazonaws.com/").policy->max_attempts == 4);
  for (const auto* const line : {"AWS_MAX_ATTEMPTS=11", "AWS_MAX_ATTEMPTS=\"11\"\n"}) {
    const auto eleven = import_aws_environment(line, "environment").value();
    CHECK(found(eleven, "https://s3.amazonaws.com/").policy->max_attempts == 11);
  }
  for (const std::string value : {"'4", "'"}) {
    const auto refused = import_aws_environment("AWS_MAX_ATTEMPTS=" + value + "\n", "environment");
    CHECK(refused.error().message.find("\"" + value + "\" is not a number of attempts") !=
          std::string::npos);
  }
  CHECK(import_aws_environment("AWS_MAX_ATTEMPTS=''\n", "environment")
            .error()
            .message.find("\"\" is not a number of attempts") != std::string::npos);
  CHECK(import_aws_environment("PATH=/bin\n", "environment").error().message ==
        "environment sets neither AWS_RETRY_MODE nor AWS_MAX_ATTEMPTS");
}

TEST_CASE("what is wrong with the settings of AWS is named, and what is left behind") {
  const auto error = [](const std::string& text, std::string_view profile = "default") {
    const auto result = import_aws_config(text, "config", profile);
    return result ? "none" : result.error().message;
  };
  CHECK(error("[default]\nretry_mode = fast\nmax_attempts = 0\nwhat\n") ==
        "config:2:14: /retry_mode: \"fast\" is not one of legacy, standard, adaptive\n"
        "config:3:16: /max_attempts: \"0\" is not a number of attempts; expected at least 1\n"
        "config:4:1: expected \"name = value\", found \"what\"");
  CHECK(error("[default]\nretry_mode = standart\n").find("did you mean \"standard\"?") !=
        std::string::npos);
  CHECK(error("[default]\nmax_attempts = 3x\n").find("\"3x\" is not a number") !=
        std::string::npos);
  CHECK(error("[default]\nmax_attempts = 3#4\n").find("\"3#4\" is not a number") !=
        std::string::npos);
  CHECK(error("[default]\nmax_attempts = # none\n").find("\"\" is not a number") !=
        std::string::npos);
  CHECK(error("max_attempts = 3\n[default]\n") ==
        "config: the profile \"default\" sets neither retry_mode nor max_attempts");
  CHECK(error("[default]\nmax_attempts = 3\nmax_attempts = 4\n") ==
        "config:3:16: /max_attempts: it is also set on line 2");
  CHECK(error("[default\n") == "config:1:1: the name of a section has no \"]\"");
  CHECK(error("[profile busy]\n", "bussy") ==
        "config: there is no section [profile bussy]; did you mean \"busy\"?");
  CHECK(error("[busy]\nmax_attempts = 3\n", "busy") ==
        "config: there is no section [profile busy]");
  CHECK(error("max_attempts = 3\n") == "config: there is no section [default]");
  CHECK(error("[default]\nregion = x\n") ==
        "config: the profile \"default\" sets neither retry_mode nor max_attempts");
  const auto imported = import_aws_config(
                            "[default]\nmax_attempts = 3\ndefaults_mode = mobile\n"
                            "metadata_service_timeout = 1\n",
                            "config")
                            .value();
  CHECK(lines(imported) ==
        "config:3:17: warning: /defaults_mode: is not imported: only retry_mode and max_attempts "
        "are\n"
        "config:4:28: warning: /metadata_service_timeout: is not imported: only retry_mode and "
        "max_attempts are\n");
}
