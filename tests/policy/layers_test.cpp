#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

PolicySet parsed(const std::string& text) { return parse_policies(text, "p.json").value(); }

ResolvedPolicy found(const PolicySet& set, const std::string& url = "https://elsewhere/") {
  return set.find("GET", Url::parse(url).value());
}

// The default of a file with those policies.
ResolvedPolicy resolved(const std::string& policies, const std::string& chosen) {
  return found(
      parsed(R"({"version": 1, "policies": )" + policies + R"(, "default": )" + chosen + "}"));
}

std::string source_of(const ResolvedPolicy& policy, std::string_view key) {
  const auto* const value = policy.values.find(key);
  return value == nullptr ? "nothing" : value->json + " " + value->source;
}

}  // namespace

TEST_CASE("objects merge key by key and an object that names its kind replaces") {
  const auto merged = resolved(R"({"a": {"backoff": {"initial": "7s"}}})", "\"a\"");
  CHECK(merged.policy->backoff.initial == 7s);
  CHECK(merged.policy->backoff.max_interval == 20s);

  const auto replaced =
      resolved(R"({"a": {"backoff": {"kind": "exponential", "initial": "7s"}}})", "\"a\"");
  CHECK(replaced.policy->backoff.max_interval == kForever);

  const auto statuses = resolved(R"({"a": {"retry_on": {"statuses": [500]}}})", "\"a\"");
  CHECK(statuses.policy->retry_on.statuses == StatusSet{500});
  CHECK(statuses.policy->retry_on.throttle_statuses == StatusSet{429});
}

TEST_CASE("a list of rates replaces the rate below as a whole, and is replaced as a whole") {
  const std::string rates = R"({"limit": "60/m"}, {"limit": "100/m", "counts": "cost"}])";
  const std::string base = R"({"one": {"rate": {"limit": "5/s", "burst": 3}},
                               "two": {"rate": [)" +
                           rates + R"(}, "a": {"extends": )";
  const auto list = resolved(base + R"("one", "rate": [)" + rates + "}}", "\"a\"");
  REQUIRE(list.policy->guards.rate);
  CHECK(list.policy->guards.rate->burst == 1);
  REQUIRE(list.policy->guards.rate->further.size() == 1);
  CHECK(list.policy->guards.rate->further[0] == RatePolicy::of_cost(100, 1min));
  REQUIRE(list.guard_names);
  CHECK(list.guard_names->rate == "/policies/a");

  const auto kept = resolved(base + R"("two"}})", "\"a\"");
  CHECK(*kept.policy->guards.rate == *list.policy->guards.rate);
  CHECK(kept.guard_names->rate == "/policies/two");  // so both share the state

  const auto single = resolved(base + R"("two", "rate": {"limit": "7/s"}}})", "\"a\"");
  CHECK(*single.policy->guards.rate == RatePolicy::per_second(7));
  const auto none = resolved(base + R"("two", "rate": "none"}})", "\"a\"");
  CHECK_FALSE(none.policy->guards.rate);

  const auto set = with_settings(PolicySet(), Settings{{"rate", "[" + rates}}, "--set");
  CHECK(*found(set.value()).policy->guards.rate == *list.policy->guards.rate);
  const auto again = with_settings(set.value(), Settings{{"max_attempts", "3"}}, "--set");
  CHECK(*found(again.value()).policy->guards.rate == *list.policy->guards.rate);
  const auto counts =
      with_settings(PolicySet(), Settings{{"rate.limit", "9/s"}, {"rate.counts", "cost"}}, "--set");
  CHECK(found(counts.value()).policy->guards.rate->burst == 9);
  const auto burst = with_settings(set.value(), Settings{{"rate.burst", "2"}}, "--set");
  REQUIRE_FALSE(burst.has_value());
  CHECK(burst.error().message == "--set rate: missing key \"limit\"");
}

TEST_CASE("a rate holds for a second, a minute, an hour or a day") {
  const std::pair<const char*, Duration> rows[] = {
      {"3/s", 1s}, {"3/m", 1min}, {"3/h", 1h}, {"3/d", 24h}};
  for (const auto& row : rows) {
    CAPTURE(row.first);
    const auto rate =
        resolved(R"({"a": {"rate": {"limit": ")" + std::string(row.first) + "\"}}}", "\"a\"")
            .policy->guards.rate;
    CHECK(rate.value() == RatePolicy::of_requests(3, row.second));
  }
}

TEST_CASE("a block is named after the place that states it") {
  const auto set = parsed(R"({"version": 1, "endpoints": [
      {"name": "api", "match": {"host": "a"}, "policy": {"rate": {"limit": "1/s"}}}]})");
  CHECK(found(set).guard_names == nullptr);
  const auto api = found(set, "https://a/");
  REQUIRE(api.guard_names);
  CHECK(api.guard_names->rate == "endpoint \"api\"");
  CHECK(api.guard_names->pause.empty());
  const auto result = with_settings(set, Settings{{"breaker", "{}"}}, "--set").value();
  REQUIRE(found(result).guard_names);
  CHECK(found(result).guard_names->breaker == "--set");
  CHECK(found(result).guard_names->rate.empty());
  CHECK(found(result, "https://a/").guard_names->breaker == "--set");
  CHECK(found(result, "https://a/").guard_names->rate == "endpoint \"api\"");
}

TEST_CASE("a breaker may have the numbers of another one") {
  const auto breaker = [](const std::string& name) {
    return resolved(R"({"a": {"breaker": {"preset": ")" + name + "\"}}}", "\"a\"")
        .policy->guards.breaker.value();
  };
  BreakerPolicy hystrix;
  hystrix.failure_ratio = 0.5;
  hystrix.min_requests = 20;
  hystrix.window = 10s;
  hystrix.failures = 0;
  hystrix.open_for = Backoff::constant(5s);
  hystrix.probes = 1;
  CHECK(breaker("hystrix") == hystrix);
  auto polly = hystrix;
  polly.failure_ratio = 0.1;
  polly.min_requests = 100;
  polly.window = 30s;
  CHECK(breaker("polly") == polly);
}

TEST_CASE("null returns to the value below, and none switches off") {
  const std::string base = R"({"base": {"max_attempts": 7, "backoff": {"initial": "7s"},
                               "budget": "none", "throttle_backoff": "none"},)";
  const auto back = resolved(
      base + R"("a": {"extends": "base", "max_attempts": null, "backoff": {"initial": null}}})",
      "\"a\"");
  CHECK(back.policy->max_attempts == 7);
  CHECK(back.policy->backoff.initial == 7s);
  CHECK(back.policy->budget.kind == BudgetPolicy::Kind::None);
  CHECK_FALSE(back.policy->throttle_backoff.has_value());
}

TEST_CASE("a preset replaces its blocks and leaves timeouts, hints and key") {
  const auto both = resolved(R"({"base": {"connect_timeout": "2s", "idempotency_key": "K",
      "server_delay": {"max": "9s"}, "max_attempts": 9, "preset": "aws-adaptive",
      "retry_on": {"pending": {"statuses": [202]}}}})",
                             R"({"extends": "base", "preset": "github"})");
  const auto& policy = *both.policy;
  CHECK(policy.max_attempts == 4);
  CHECK(policy.max_elapsed_time == 15min);
  CHECK_FALSE(policy.retry_on.pending.has_value());
  CHECK_FALSE(policy.adaptive);
  CHECK(policy.connect_timeout == 2s);
  CHECK(policy.idempotency_key == "K");
  CHECK(policy.server_delay.max == 9s);
  CHECK(policy.server_delay.combine == ServerDelayPolicy::Combine::Server);
  CHECK(both.preset == "github");
}

TEST_CASE("the chain of extends counts from its root") {
  const auto last = resolved(R"({
      "c": {"extends": "b", "repeat": "never"},
      "b": {"extends": "a", "max_attempts": 3, "connect_timeout": "3s"},
      "a": {"max_attempts": 2, "connect_timeout": "2s", "stall_timeout": "2s"}})",
                             "\"c\"");
  CHECK(last.policy->max_attempts == 3);
  CHECK(last.policy->connect_timeout == 3s);
  CHECK(last.policy->stall_timeout == 2s);
  CHECK(last.policy->repeat == Repeat::Never);
  CHECK(last.name == "c");
}

TEST_CASE("every value knows where it was written") {
  const auto policy = resolved(R"({"base": {
  "connect_timeout": "2s",
  "backoff": {"initial": "3s"}}})",
                               R"({"extends": "base", "preset": "gcs", "repeat": "safe"})");
  CHECK(source_of(policy, "connect_timeout") == "\"2s\" p.json:2:22");
  CHECK(source_of(policy, "backoff.initial") == "\"1s\" preset gcs");
  CHECK(source_of(policy, "repeat") == "\"safe\" p.json:3:93");
  CHECK(source_of(policy, "stall_timeout") == "\"30s\" built in");
  CHECK(source_of(policy, "backoff.cap") == "\"before\" built in");
  CHECK(source_of(policy, "backoff.interval") == "nothing");
  CHECK(source_of(policy, "budget") == "\"none\" preset gcs");
  CHECK(policy.source == "p.json:3:46");
  CHECK(policy.preset == "gcs");
  CHECK(policy.name.empty());
}

TEST_CASE("what is left out has the value that the format says") {
  const auto backoff = [](const std::string& json) {
    return resolved(R"({"a": {"backoff": )" + json + "}}", "\"a\"").policy->backoff;
  };
  const auto exponential = backoff(R"({"kind": "exponential", "initial": "1s"})");
  CHECK(exponential.multiplier == 2);
  CHECK(exponential.jitter == Backoff::Jitter::Full);
  CHECK(exponential.max_interval == kForever);
  CHECK_FALSE(exponential.cap_after_jitter);
  CHECK(backoff(R"({"kind": "exponential", "initial": "1s", "jitter": "proportional"})")
            .randomization == 0.5);
  CHECK(backoff(R"({"kind": "decorrelated", "initial": "1s"})").multiplier == 3);
  CHECK(backoff(R"({"kind": "decorrelated", "initial": "1s", "multiplier": 4})").multiplier == 4);
  CHECK(backoff(R"({"kind": "slots", "slot": "1ms"})").steps == 10);
  CHECK(backoff(R"({"kind": "slots", "slot": "1ms"})").abort == 16);

  const auto tokens =
      resolved(R"({"a": {"budget": {"kind": "tokens", "retry_cost": 7}}})", "\"a\"").policy->budget;
  CHECK(tokens.throttle_cost == 7'000);
  CHECK(tokens.timeout_cost == 7'000);
  CHECK(tokens.scope == BudgetPolicy::Scope::Host);
  const auto ratio = resolved(R"({"a": {"budget": {"kind": "ratio"}}})", "\"a\"").policy->budget;
  CHECK(ratio.ratio == 200);
  CHECK(ratio.window == 10s);
  CHECK(ratio.min_per_second == 10'000);

  const auto pending = resolved(R"({"a": {"retry_on": {"pending": {"statuses": [202]}}}})", "\"a\"")
                           .policy->retry_on.pending;
  REQUIRE(pending.has_value());
  CHECK(pending->backoff.kind == Backoff::Kind::Constant);
  CHECK(pending->backoff.initial == 1s);
  CHECK_FALSE(pending->max.has_value());

  const auto plain = resolved("{}", "{}");
  CHECK(*plain.policy == RetryPolicy());
  CHECK(plain.policy->elapsed_rule == ElapsedRule::IncludeWait);
  CHECK(plain.policy->repeat == Repeat::Safe);
  CHECK(plain.policy->server_delay.headers ==
        std::vector{ServerDelaySource::RetryAfter, ServerDelaySource::RetryAfterMs,
                    ServerDelaySource::XMsRetryAfterMs, ServerDelaySource::XAmzRetryAfter,
                    ServerDelaySource::XRateLimitReset, ServerDelaySource::XRateLimitResets,
                    ServerDelaySource::AnthropicResets, ServerDelaySource::RateLimitReset,
                    ServerDelaySource::RateLimit, ServerDelaySource::GrpcRetryPushback});
}

TEST_CASE("of the items of a status set, later ones win") {
  const auto statuses = [](const std::string& items) {
    return resolved(R"({"a": {"retry_on": {"statuses": )" + items + "}}}", "\"a\"")
        .policy->retry_on.statuses;
  };
  CHECK(statuses(R"(["5xx", "!501"])").contains(599));
  CHECK_FALSE(statuses(R"(["5xx", "!501"])").contains(501));
  CHECK(statuses(R"(["!501", "5xx"])").contains(501));
  CHECK(statuses(R"(["!500-509", 503])") == StatusSet{503});
  CHECK(statuses(R"(["500-509", "!5xx", 503])") == StatusSet{503});
  StatusSet all;
  all.add(100, 199);
  CHECK(statuses(R"(["1xx"])") == all);
  CHECK(statuses(R"(["100-199"])") == all);
  all.add(400, 499);
  CHECK(statuses(R"(["1xx", "4xx"])") == all);
}

TEST_CASE("an entry is called by its name or its pointer, and says why others lost") {
  const auto set = parsed(R"({"version": 1, "policies": {"p": {"max_attempts": 2}}, "endpoints": [
      {"match": {"host": "*.b.c"}, "policy": {"max_attempts": 3}},
      {"name": "exact", "match": {"host": "a.b.c"}, "policy": "p"}]})");
  CHECK(found(set, "https://a.b.c/x").endpoint == "exact");
  CHECK(found(set, "https://a.b.c/x").name == "p");
  CHECK(found(set, "https://x.b.c/x").endpoint == "/endpoints/0");
  CHECK(found(set).endpoint.empty());

  const auto candidates = set.candidates("GET", Url::parse("https://a.b.c/").value());
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].resolved->endpoint == "exact");
  CHECK(candidates[0].why_lost.empty());
  CHECK_FALSE(candidates[1].why_lost.empty());
}

TEST_CASE("entries that would match but for one condition say which, as it was written") {
  const auto set = parsed(R"({"version": 1, "endpoints": [
      {"name": "path", "match": {"host": "a.b", "path": "/x/**"}, "policy": {}},
      {"name": "methods", "match": {"host": "a.b", "methods": ["PUT", "POST"]}, "policy": {}},
      {"name": "method", "match": {"host": ["e.f", "a.b"], "methods": ["DELETE"]}, "policy": {}},
      {"name": "port", "match": {"host": "a.b", "port": 8080}, "policy": {}},
      {"name": "scheme", "match": {"host": "a.b", "scheme": "http"}, "policy": {}},
      {"name": "header", "match": {"host": "a.b", "headers": {"x-tier": "gold*"}}, "policy": {}},
      {"name": "query", "match": {"host": "a.b", "port": 443, "query": {"key": "1"}},
       "policy": {}},
      {"name": "two", "match": {"host": "a.b", "scheme": "http", "port": 8080}, "policy": {}},
      {"name": "two headers", "match": {"host": "a.b", "headers": {"a": "1", "b": "2"}},
       "policy": {}},
      {"name": "host", "match": {"host": "c.d"}, "policy": {}}]})");
  const auto misses = [&set](const char* method, const char* url) {
    std::string all;
    for (const auto& miss : set.near_misses(method, Url::parse(url).value())) {
      all += miss.resolved->endpoint + ": " + miss.why_lost + "\n";
    }
    return all;
  };
  // Those whose path fits are first. What the request has may be secret.
  CHECK(misses("GET", "https://a.b/y?key=secret") ==
        "methods: methods PUT POST do not match GET\n"
        "method: method DELETE does not match GET\n"
        "port: port 8080 does not match 443\n"
        "scheme: scheme http does not match https\n"
        "header: header x-tier=gold* does not match the request\n"
        "query: query key=1 does not match the request\n"
        "path: path /x/** does not match /y\n");
  // Also where an entry matches.
  CHECK(misses("PUT", "http://a.b:8080/x/1?key=1") ==
        "method: method DELETE does not match PUT\n"
        "header: header x-tier=gold* does not match the request\n"
        "query: port 443 does not match 8080\n");
  CHECK(misses("GET", "https://elsewhere/").empty());
}

TEST_CASE("where no entry matches and none is one condition away, those that fail the fewest are") {
  const auto set = parsed(R"({"version": 1, "endpoints": [
      {"name": "three", "match": {"host": "a.b", "path": "/x", "port": 81, "methods": ["PUT"]},
       "policy": {}},
      {"name": "two", "match": {"host": "a.b", "port": 8080, "scheme": "http"}, "policy": {}}]})");
  const auto misses = set.near_misses("GET", Url::parse("https://a.b/y").value());
  REQUIRE(misses.size() == 1);
  CHECK(misses[0].resolved->endpoint == "two");
  CHECK(misses[0].why_lost == "port 8080 does not match 443; scheme http does not match https");
  CHECK(misses[0].source == "p.json:4:7");
  // If an entry matches, those that fail more than one condition are not near.
  const auto with_winner = parsed(R"({"version": 1, "endpoints": [
      {"match": {"host": "a.b"}, "policy": {}},
      {"match": {"host": "a.b", "port": 8080, "scheme": "http"}, "policy": {}}]})");
  CHECK(with_winner.near_misses("GET", Url::parse("https://a.b/y").value()).empty());
}

TEST_CASE("an entry that says nothing of host or path does not lose by a text that nobody wrote") {
  const auto set = parsed(R"({"version": 1, "endpoints": [
      {"name": "winner", "match": {"host": "a.b", "path": "/{id}/x"}, "policy": {}},
      {"name": "no path", "match": {"host": "a.b"}, "policy": {}},
      {"name": "no host", "match": {"path": "/**"}, "policy": {}}]})");
  std::string said;
  for (const auto& one : set.candidates("GET", Url::parse("https://a.b/1/x").value())) {
    said += one.resolved->endpoint + ": " + one.why_lost + "\n";
  }
  CHECK(said ==
        "winner: \n"
        "no path: it names no path\n"
        "no host: it names no host\n");
}

TEST_CASE("an entry that says nothing of host or path loses by what it says") {
  const auto set = parsed(R"({"version": 1, "endpoints": [
      {"name": "winner", "match": {"host": "a.b.c", "path": "/x", "port": 443}, "policy": {}},
      {"name": "port", "match": {"host": "a.b.c"}, "policy": {}},
      {"name": "labels", "match": {"host": "*.c"}, "policy": {}}]})");
  std::string said;
  for (const auto& one : set.candidates("GET", Url::parse("https://a.b.c/x").value())) {
    said += one.resolved->endpoint + ": " + one.why_lost + "\n";
  }
  CHECK(said ==
        "winner: \n"
        "port: it names no port\n"
        "labels: its host is one with \"*\", not exact\n");
  const auto without_hosts = parsed(R"({"version": 1, "endpoints": [
      {"name": "winner", "match": {"path": "/x/y"}, "policy": {}},
      {"name": "any", "match": {"path": "/x/*"}, "policy": {}}]})");
  const auto all = without_hosts.candidates("GET", Url::parse("https://a.b/x/y").value());
  REQUIRE(all.size() == 2);
  CHECK(all[1].why_lost == "segment 2 of its path is any, not literal");
}

TEST_CASE("conditions that do not hold are told, and headers of the request count") {
  const auto set = parsed(R"({"version": 1, "endpoints": [
      {"name": "gold", "match": {"host": ["c.d", "a.b"], "headers": {"x-tier": "gold"}},
       "policy": {"max_attempts": 2}},
      {"name": "get", "match": {"host": "a.b", "methods": ["GET"], "query": {"do": "Get*"}},
       "policy": {}}]})");
  const auto url = Url::parse("https://a.b/").value();
  Headers gold;
  gold.add("X-Tier", "gold");

  const auto misses = set.near_misses("GET", url);

  REQUIRE(misses.size() == 2);
  CHECK(misses[0].why_lost == "header x-tier=gold does not match the request");
  CHECK(misses[1].why_lost == "query do=Get* does not match the request");
  CHECK(set.find("GET", url).endpoint.empty());
  CHECK(set.find("GET", url, gold).endpoint == "gold");
  CHECK(set.candidates("GET", url, gold).size() == 1);
  CHECK(parse_policies(set.print(), "p.json").value() == set);
}

TEST_CASE("settings lie over every policy of a set") {
  const auto set = parsed(R"({"version": 1, "policies": {"p": {"max_attempts": 2}}, "endpoints": [
      {"match": {"host": "a"}, "policy": "p"}, {"match": {"host": "b"}, "policy": "p"}]})");
  const auto result = with_settings(set,
                                    Settings{{"max_attempts", "6"},
                                             {"backoff.initial", "200ms"},
                                             {"retry_on.statuses", "[500]"},
                                             {"backoff.initial", "300ms"}},
                                    "--set");
  REQUIRE(result.has_value());
  for (const auto* const url : {"https://a/", "https://b/", "https://c/"}) {
    const auto policy = found(*result, url);
    CHECK(policy.policy->max_attempts == 6);
    CHECK(policy.policy->backoff.initial == 300ms);
    CHECK(policy.policy->backoff.max_interval == 20s);
    CHECK(policy.policy->retry_on.statuses == StatusSet{500});
    CHECK(source_of(policy, "max_attempts") == "6 --set");
    CHECK(source_of(policy, "backoff.initial") == "\"300ms\" --set");
    CHECK(source_of(policy, "stall_timeout") == "\"30s\" built in");
  }
  CHECK(found(*result, "https://a/").policy == found(*result, "https://b/").policy);
  CHECK(found(*result, "https://a/").endpoint == "/endpoints/0");
  CHECK(with_settings(set, {}, "--set").value() == set);
}

TEST_CASE("a limit of concurrency below the default to begin with can be printed and set over") {
  const auto set =
      parsed(R"({"version": 1, "default": {"concurrency": {"kind": "aimd", "max": 10}}})");
  CHECK(parsed(set.print()) == set);
  const auto result = with_settings(set, Settings{{"max_attempts", "3"}}, "--set");
  REQUIRE(result.has_value());
  CHECK(found(*result).policy->max_attempts == 3);
  CHECK(found(*result).policy->guards.concurrency->max == 10);
}

TEST_CASE("a bad setting is named") {
  struct Row {
    Settings settings;
    std::string message;
  };
  const Row rows[] = {
      {{{"max_attemps", "6"}}, "--set max_attemps: unknown key; did you mean \"max_attempts\"?"},
      {{{"backoff.initial", "200"}},
       "--set backoff.initial: 200 has no unit; write a string such as \"200s\""},
      {{{"backoff.kind", "constant"}}, "--set backoff: missing key \"interval\""},
      {{{"attempt_timeout", "2h"}},
       "--set attempt_timeout: attempt_timeout (2h) is greater than max_elapsed_time (1m)"},
      {{{"preset", "gsc"}}, "--set preset: there is no preset \"gsc\"; did you mean \"gcs\"?"},
      {{{"extends", "a"}},
       "--set extends: a setting applies to every policy; it cannot extend one"},
      {{{"max_attempts.x", "1"}},
       "--set max_attempts: expected a number or \"unlimited\", found an object"},
      {{{"", "1"}}, "--set: unknown key"},
  };
  for (const auto& row : rows) {
    const auto result = with_settings(PolicySet(), row.settings, "--set");
    CAPTURE(row.message);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().message.substr(0, row.message.size()) == row.message);
  }
}

TEST_CASE("settings may name a kind with its keys, and a preset") {
  const auto constant = with_settings(
      PolicySet(), Settings{{"backoff.kind", "constant"}, {"backoff.interval", "2s"}}, "--set");
  CHECK(found(constant.value()).policy->backoff.initial == 2s);

  const auto preset =
      with_settings(PolicySet(), Settings{{"preset", "gcs"}, {"max_attempts", "3"}}, "--set");
  CHECK(found(preset.value()).preset == "gcs");
  CHECK(found(preset.value()).policy->max_elapsed_time == 15min);
  CHECK(found(preset.value()).policy->max_attempts == 3);
}
