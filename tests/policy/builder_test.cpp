// What is built is what the same JSON gives.
#include "tests/policy/policy_cases.hpp"

#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

EndpointPattern host(std::string name) {
  EndpointPattern pattern;
  pattern.host = std::move(name);
  return pattern;
}

PolicySet read(const std::string& text) { return parse_policies(text, "p.json").value(); }

// The set whose default is that policy.
PolicySet built(const PolicyBuilder& policy) {
  return PolicySet::builder().fallback(policy).build().value();
}

std::string problems_of(const PolicySetBuilder& builder) {
  std::string lines;
  for (const auto& problem : builder.check("b").problems) lines += to_string(problem) + "\n";
  return lines;
}

}  // namespace

TEST_CASE("each word of the builder is the key of the file") {
  struct Row {
    PolicyBuilder policy;
    const char* json;
  };
  Backoff backoff;
  backoff.kind = Backoff::Kind::Constant;
  backoff.initial = 3s;
  RetryOn on;
  on.statuses = {503};
  on.throttle_statuses = {};
  on.error_codes = {ErrorRule(ErrorRule::Family::Aws)};
  on.transport = 1U << static_cast<unsigned>(TransportKind::Connect);
  RetryOn polled;
  polled.pending.emplace().statuses = {202};
  polled.pending->url_from = {"Operation-Location", "Location"};
  polled.pending->origins = {"https://*.a.test"};
  ServerDelayPolicy delay;
  delay.headers = {ServerDelaySource::RetryAfter};
  delay.max = 9s;
  BudgetPolicy ratio;
  ratio.kind = BudgetPolicy::Kind::Ratio;
  HedgePolicy hedge;
  hedge.quantile = 0.95;
  auto two_rates = RatePolicy::of_requests(60, 1min);
  two_rates.further = {RatePolicy::of_cost(10'000, 1min)};
  const Row rows[] = {
      {PolicyBuilder(), "{}"},
      {PolicyBuilder().preset("gcs"), R"({"preset": "gcs"})"},
      {PolicyBuilder().max_attempts(7), R"({"max_attempts": 7})"},
      {PolicyBuilder().unlimited_attempts(), R"({"max_attempts": "unlimited"})"},
      {PolicyBuilder().max_elapsed_time(90s), R"({"max_elapsed_time": "1m30s"})"},
      {PolicyBuilder().max_elapsed_time(kForever), R"({"max_elapsed_time": "none"})"},
      {PolicyBuilder().attempt_timeout(250ms), R"({"attempt_timeout": "250ms"})"},
      {PolicyBuilder().response_timeout(2s), R"({"response_timeout": "2s"})"},
      {PolicyBuilder().connect_timeout(2s), R"({"connect_timeout": "2s"})"},
      {PolicyBuilder().stall_timeout(2s), R"({"stall_timeout": "2s"})"},
      {PolicyBuilder().elapsed_rule(ElapsedRule::ClipWait), R"({"elapsed_rule": "clip_wait"})"},
      {PolicyBuilder().backoff(backoff), R"({"backoff": {"kind": "constant", "interval": "3s"}})"},
      {PolicyBuilder().throttle_backoff(backoff),
       R"({"throttle_backoff": {"kind": "constant", "interval": "3s"}})"},
      {PolicyBuilder().rate(RatePolicy()),
       R"({"rate": {"counts": "requests", "limit": "10/s", "burst": 1, "scope": "host",
                    "max_wait": "none"}})"},
      {PolicyBuilder().rate(two_rates),
       R"({"rate": [{"counts": "requests", "limit": "60/m", "burst": 1, "scope": "host",
                     "max_wait": "none"},
                    {"counts": "cost", "limit": "10000/m", "burst": 10000, "scope": "host",
                     "max_wait": "none"}]})"},
      {PolicyBuilder().breaker(std::nullopt), R"({"breaker": "none"})"},
      {PolicyBuilder().concurrency(ConcurrencyPolicy()), R"({"concurrency": {"max": 64}})"},
      {PolicyBuilder().pause(PausePolicy()), R"({"pause": {"max": "1m"}})"},
      {PolicyBuilder().priority(Priority::Low), R"({"priority": "low"})"},
      {PolicyBuilder().hedge(hedge),
       R"({"hedge": {"after": "p95", "initial": "none", "min_samples": 50, "min": "2ms", "max": "5s",
            "max_hedges": 1, "methods": ["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"],
            "budget": 0.05, "scope": "endpoint"}})"},
      {PolicyBuilder().hedge(std::nullopt), R"({"hedge": "none"})"},
      {PolicyBuilder().throttle_backoff(std::nullopt), R"({"throttle_backoff": "none"})"},
      {PolicyBuilder().retry_on(on),
       R"({"retry_on": {"statuses": [503], "throttle_statuses": [], "error_codes": ["aws"],
                        "transport": ["connect"], "pending": "none"}})"},
      {PolicyBuilder().retry_on(polled),
       R"({"retry_on": {"pending": {"statuses": [202], "origins": ["https://*.a.test"],
                                    "url_from": ["Operation-Location", "Location"]}}})"},
      {PolicyBuilder()
           .set("retry_on.pending.statuses", "[202]")
           .set("retry_on.pending.url_from", "Location"),
       R"({"retry_on": {"pending": {"statuses": [202], "url_from": ["Location"]}}})"},
      {PolicyBuilder().repeat(Repeat::Always), R"({"repeat": "always"})"},
      {PolicyBuilder().repeat(Repeat::Refused), R"({"repeat": "refused"})"},
      {PolicyBuilder().idempotency_key("K"), R"({"idempotency_key": "K"})"},
      {PolicyBuilder().attempt_header("A"), R"({"attempt_header": "A"})"},
      {PolicyBuilder().deadline_header("D"), R"({"deadline_header": "D"})"},
      {PolicyBuilder().server_delay(delay),
       R"({"server_delay": {"headers": ["retry-after"], "combine": "grow", "max": "9s",
                            "over_max": "stop", "max_over_own": "none", "spread": 0}})"},
      {PolicyBuilder().budget(ratio), R"({"budget": {"kind": "ratio"}})"},
      {PolicyBuilder().budget(BudgetPolicy()), R"({"budget": "none"})"},
      {PolicyBuilder().adaptive(true), R"({"adaptive": true})"},
      {PolicyBuilder().set("backoff.initial", "200ms"), R"({"backoff": {"initial": "200ms"}})"},
      {PolicyBuilder().set("retry_on.statuses", "[500]").set("retry_on.transport", "[]"),
       R"({"retry_on": {"statuses": [500], "transport": []}})"},
      {PolicyBuilder().max_attempts(7).max_attempts(8), R"({"max_attempts": 8})"},
      {PolicyBuilder().backoff(backoff).set("backoff.interval", "4s"),
       R"({"backoff": {"kind": "constant", "interval": "4s"}})"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.json);
    CHECK(built(row.policy) == read(cases::file_of(row.json)));
  }
}

TEST_CASE("a copy of a builder is changed by itself") {
  auto policy = PolicyBuilder().backoff(Backoff::constant(3s));
  const auto copy = policy;
  policy.max_attempts(2);
  CHECK(copy.json() == "{\n  \"backoff\": {\"kind\": \"constant\", \"interval\": \"3s\"}\n}");
  CHECK(built(policy) == read(cases::file_of(R"({"max_attempts": 2,
      "backoff": {"kind": "constant", "interval": "3s"}})")));
}

TEST_CASE("names, entries and the default are those of the file") {
  auto users = host("*.internal");
  users.scheme = "https";
  users.port = 8443;
  users.path = "/v1/users/{id}";
  users.methods = {"GET", "PUT"};
  const auto builder = PolicySet::builder()
                           .policy("careful", PolicyBuilder().preset("standard").max_attempts(4))
                           .policy("uploads", PolicyBuilder().extends("careful").max_attempts(2))
                           .endpoint(host("www.googleapis.com"),
                                     PolicyBuilder().extends("careful").preset("gcs"), "storage")
                           .endpoint(users, "uploads")
                           .fallback("careful");
  const auto set = builder.build().value();
  CHECK(set == read(R"({"version": 1, "default": "careful", "policies": {
      "careful": {"preset": "standard", "max_attempts": 4},
      "uploads": {"extends": "careful", "max_attempts": 2}}, "endpoints": [
      {"name": "storage", "match": {"host": "www.googleapis.com"},
       "policy": {"extends": "careful", "preset": "gcs"}},
      {"match": {"scheme": "https", "host": "*.internal", "port": 8443, "path": "/v1/users/{id}",
                 "methods": ["GET", "PUT"]}, "policy": "uploads"}]})"));
  CHECK(set == read(builder.json()));
  CHECK(PolicySet::builder().build().value() == PolicySet());
  // Each stands on a line of its own, for sources and problems to name.
  const auto& found = set.find("GET", Url::parse("https://www.googleapis.com/").value());
  CHECK(found.source == "built:12:17");
  CHECK(found.values.find("max_attempts")->source == "preset gcs");
}

TEST_CASE("lists of hosts and conditions on headers and query are those of the file") {
  auto gold = host("api.test");
  gold.more_hosts = {"*.api.test", "s3.*.api.test"};
  gold.headers = {{"X-Tier", "gold*"}, {"x-trace", "*"}};
  gold.query = {{"do", "Get Item"}};
  const auto builder = PolicySet::builder().endpoint(gold, PolicyBuilder().max_attempts(7), "gold");
  const auto set = builder.build().value();
  CHECK(set == read(R"({"version": 1, "endpoints": [{"name": "gold", "match": {
      "host": ["api.test", "*.api.test", "s3.*.api.test"],
      "headers": {"X-Tier": "gold*", "x-trace": "*"}, "query": {"do": "Get Item"}},
      "policy": {"max_attempts": 7}}]})"));
  CHECK(set == read(builder.json()));
  const Headers headers{{"x-tier", "golden"}, {"X-Trace", "1"}};
  for (const auto* one : {"api.test", "eu.api.test", "s3.eu.api.test"}) {
    const auto url = Url::parse(std::string("http://") + one + "/?do=Get%20Item").value();
    CHECK(set.find("GET", url, headers).endpoint == "gold");
    CHECK(set.find("GET", url).endpoint.empty());
  }
}

TEST_CASE("what is wrong is told as it is of the file") {
  CHECK(problems_of(PolicySet::builder().fallback(PolicyBuilder().max_attempts(0))) ==
        "b:4:21: /default/max_attempts: 0 is out of range: at least 1; the first send counts\n");
  CHECK(problems_of(PolicySet::builder().policy("\xff", PolicyBuilder())) ==
        "b: invalid UTF-8 in a string of the builder\n");
  CHECK(problems_of(PolicySet::builder().fallback("nobody")) ==
        "b:3:14: /default: there is no policy \"nobody\"\n");
  CHECK(problems_of(PolicySet::builder().fallback(PolicyBuilder().attempt_timeout(-1500ms))) ==
        "b:4:24: /default/attempt_timeout: \"-1.5s\" is negative\n");
  CHECK(problems_of(PolicySet::builder().fallback(PolicyBuilder().idempotency_key("\xff")))
            .find("invalid UTF-8") != std::string::npos);
  CHECK(problems_of(PolicySet::builder().fallback(PolicyBuilder().set("max_attemps", "3")))
            .find("unknown key; did you mean \"max_attempts\"?") != std::string::npos);
  CHECK(problems_of(PolicySet::builder().endpoint(EndpointPattern(), "standard"))
            .find("/endpoints/0/match: at least one key is needed") != std::string::npos);
  CHECK(problems_of(PolicySet::builder().policy("a", PolicyBuilder()).policy("a", PolicyBuilder()))
            .find("/policies/a: duplicate key") != std::string::npos);
  CHECK(problems_of(PolicySet::builder().endpoint(host("a"), "standard").endpoint(host("A"), "x"))
            .find("/endpoints/1: matches the same requests as /endpoints/0 (b:4:5)") !=
        std::string::npos);

  Backoff backoff;
  backoff.initial = 1s;
  backoff.multiplier = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(problems_of(PolicySet::builder().fallback(PolicyBuilder().backoff(backoff))).empty());
  BudgetPolicy budget;
  budget.kind = BudgetPolicy::Kind::Tokens;
  budget.capacity = -1'500;
  CHECK(problems_of(PolicySet::builder().fallback(PolicyBuilder().budget(budget)))
            .find("/default/budget/capacity: -1.5 is out of range") != std::string::npos);
  PausePolicy pause;
  pause.scope = GuardScope::Credentials;
  HedgePolicy hedge;
  hedge.scope = GuardScope::Credentials;
  CHECK(problems_of(PolicySet::builder().fallback(PolicyBuilder().pause(pause).hedge(hedge))) ==
        "b:4:55: /default/pause/scope: \"\" is not one of host, endpoint, policy\n"
        "b:14:16: /default/hedge/scope: \"\" is not one of host, endpoint, policy\n");
  const auto no_rule = static_cast<ElapsedRule>(99);
  CHECK(problems_of(PolicySet::builder().fallback(PolicyBuilder().elapsed_rule(no_rule)))
            .find("/default/elapsed_rule: \"\" is not one of include_wait, before_wait, "
                  "clip_wait") != std::string::npos);
  CHECK(PolicySet::builder().fallback("nobody").build("code").error().message ==
        "code:3:14: /default: there is no policy \"nobody\"");
}

TEST_CASE("every good case of a policy is built from its own values as the same") {
  for (const auto& one : cases::policies()) {
    if (!one.problem.empty()) continue;
    CAPTURE(one.text);
    const auto set = read(cases::file_of(one.text));
    const auto& policy = *set.find("GET", Url::parse("http://a/").value()).policy;
    auto builder = PolicyBuilder()
                       .max_elapsed_time(policy.max_elapsed_time)
                       .attempt_timeout(policy.attempt_timeout)
                       .response_timeout(policy.response_timeout)
                       .connect_timeout(policy.connect_timeout)
                       .stall_timeout(policy.stall_timeout)
                       .elapsed_rule(policy.elapsed_rule)
                       .backoff(policy.backoff)
                       .throttle_backoff(policy.throttle_backoff)
                       .retry_on(policy.retry_on)
                       .repeat(policy.repeat)
                       .server_delay(policy.server_delay)
                       .budget(policy.budget)
                       .adaptive(policy.adaptive)
                       .pause(policy.guards.pause)
                       .rate(policy.guards.rate)
                       .concurrency(policy.guards.concurrency)
                       .breaker(policy.guards.breaker)
                       .priority(policy.guards.priority)
                       .hedge(policy.hedge);
    if (policy.max_attempts) builder.max_attempts(*policy.max_attempts);
    if (!policy.max_attempts) builder.unlimited_attempts();
    if (!policy.idempotency_key.empty()) builder.idempotency_key(policy.idempotency_key);
    if (!policy.attempt_header.empty()) builder.attempt_header(policy.attempt_header);
    if (!policy.deadline_header.empty()) builder.deadline_header(policy.deadline_header);
    const auto again = built(builder);
    CHECK(*again.find("GET", Url::parse("http://a/").value()).policy == policy);
  }
}
