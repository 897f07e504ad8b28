// parse(print(set)) == set: for the examples, and for what chance makes.
#include "tests/policy/policy_cases.hpp"
#include "tests/rounds.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>

using namespace httpretry;

namespace {

// Writes policies that are good, most of the time.
class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::string policy() {
    std::string keys;
    const auto add = [&](const std::string& key, const std::string& value) {
      if (chance(3)) keys += (keys.empty() ? "" : ", ") + ("\"" + key + "\": ") + value;
    };
    add("preset", one_of({"\"gcs\"", "\"github\"", "\"envoy\"", "\"aws-general\"", "null"}));
    add("max_attempts", one_of({"1", "7", "100", "null"}));
    add("max_elapsed_time", one_of({"\"1h0.5s\"", "\"2h\"", "\"365h1ns\""}));
    add("attempt_timeout", duration());
    add("response_timeout", duration());
    add("elapsed_rule", one_of({"\"before_wait\"", "\"clip_wait\""}));
    add("backoff", backoff());
    add("throttle_backoff", chance(2) ? "\"none\"" : backoff());
    add("retry_on", retry_on());
    add("repeat", one_of({"\"always\"", "\"never\"", "\"refused\""}));
    add("idempotency_key", "\"X-Key\"");
    add("attempt_header", "\"X-Attempt\"");
    add("deadline_header", "\"grpc-timeout\"");
    add("server_delay", one_of({R"({"headers": [], "spread": 0.25})", R"({"max": "none"})",
                                R"({"headers": ["Retry-After"], "combine": "own"})"}));
    add("budget", one_of({"\"none\"", R"({"kind": "tokens", "capacity": 0.125})",
                          R"({"kind": "ratio", "ratio": 0.333, "window": "90s"})",
                          R"({"kind": "grpc", "max_tokens": 3.5, "token_ratio": 0.001})",
                          R"({"kind": "concurrent", "ratio": 0.125, "min": 0})"}));
    add("adaptive", "true");
    add("rate", one_of({"\"none\"", R"({"limit": "3/d", "burst": 2})",
                        R"({"limit": "9/s", "counts": "cost", "scope": "credentials"})",
                        R"([{"limit": "60/m"}, {"burst": 7, "counts": "cost", "limit": "100/m"}])",
                        R"([{"limit": "60/m", "max_wait": "2s"}])"}));
    return "{" + keys + "}";
  }

  // Of an entry for the path "/m", with all kinds of other keys.
  std::string match() {
    std::string keys = R"("path": "/m)" + one_of({"", "/{id}", "/**"}) + "\"";
    const auto add = [&](const std::string& key, const std::string& value) {
      if (chance(2)) keys += ", \"" + key + "\": " + value;
    };
    add("scheme", one_of({"\"http\"", "\"https\""}));
    add("host", one_of({"\"*.a\"", R"(["a.b"])", R"(["a.b", "*.c.*.d", "[::1]", "\u00fc.de"])"}));
    add("port", "8080");
    add("methods", R"(["GET", "PUT"])");
    add("headers", one_of({R"({"X-Tier": "gold"})", R"({"x": "\u00e9*", "Y": "*", "z": ""})"}));
    add("query", one_of({R"({"do": "Get*"})", R"({"a b": "\"", "c": "**"})"}));
    return "{" + keys + "}";
  }

 private:
  bool chance(int of) { return std::uniform_int_distribution(1, of)(random_) == 1; }
  std::string one_of(std::initializer_list<const char*> texts) {
    std::uniform_int_distribution<std::size_t> pick(0, texts.size() - 1);
    return texts.begin()[pick(random_)];
  }
  std::string duration() {
    static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
    const auto count = std::uniform_int_distribution(1, 3599)(random_);
    const auto unit = std::uniform_int_distribution<std::size_t>(0, 3)(random_);
    return "\"" + std::to_string(count) + kUnits[unit] + "\"";
  }
  std::string backoff() {
    return one_of(
        {R"({"kind": "none"})", R"({"kind": "constant", "interval": "1.5us"})",
         R"({"kind": "linear", "initial": "1s", "increment": "0s", "max_interval": "1m"})",
         R"({"kind": "exponential", "initial": "3ms", "multiplier": 1.1, "jitter": "range",
             "low": 0.1, "high": 0.7})",
         R"({"kind": "exponential", "initial": "3ms", "jitter": "proportional", "cap": "after"})",
         R"({"kind": "exponential", "initial": "3ms", "jitter": "additive", "add": "1h"})",
         R"({"kind": "decorrelated", "initial": "1ms"})",
         R"({"kind": "truncated_binary", "max_interval": "10s", "steps": 4})",
         R"({"kind": "slots", "slot": "51.2us", "abort": 3})"});
  }
  std::string retry_on() {
    return one_of(
        {R"({"statuses": [], "transport": []})", R"({"statuses": ["1xx", "4xx", "!410-419"]})",
         R"({"statuses": [500, 501, 503, 599], "throttle_statuses": ["5xx", "!500"]})",
         R"({"pending": {"statuses": [202], "json": "/a~1\"b", "in": ["\u00e9", 1.50, false]}})",
         R"({"pending": {"statuses": [202], "max": 3, "backoff": {"interval": "3s"}}})",
         R"({"pending": {"statuses": [202], "url_from": "Operation-Location"}})",
         R"({"pending": {"statuses": ["2xx"], "url_from": ["Location", "x-where"],
             "origins": ["https://a.test:8443", "http://*.b.test"]}})",
         R"({"pending": "none", "error_codes": ["stripe", {"xml": "/Error/Code", "in": ["A"],
             "as": "success"}, {"header": "x", "status": ["4xx", "!404"], "as": "throttle"}]})"});
  }

  std::mt19937 random_;
};

void check_round_trip(const PolicySet& set) {
  const auto text = set.print();
  CAPTURE(text);
  const auto again = check_policies(text, "printed.json");
  for (const auto& problem : again.problems) CAPTURE(to_string(problem));
  REQUIRE(again.set.has_value());
  CHECK(*again.set == set);
  CHECK(again.set->print() == text);
}

}  // namespace

TEST_CASE("what is printed is read as the same: every good case") {
  for (const auto& one : cases::files()) {
    CAPTURE(one.text);
    const auto checked = check_policies(one.text, "p.json");
    if (one.problem.empty()) REQUIRE(checked.set.has_value());
    if (checked.set) check_round_trip(*checked.set);
  }
  for (const auto& one : cases::policies()) {
    CAPTURE(one.text);
    const auto checked = check_policies(cases::file_of(one.text), "p.json");
    if (one.problem.empty()) REQUIRE(checked.set.has_value());
    if (checked.set) check_round_trip(*checked.set);
  }
}

TEST_CASE("what is printed is read as the same: policies made by chance") {
  const auto* const given = std::getenv("HTTPRETRY_SEED");
  const auto seed =
      given == nullptr ? std::random_device()() : static_cast<unsigned>(std::stoul(given));
  MESSAGE("HTTPRETRY_SEED=" << seed);
  Writer writer(seed);
  auto good = 0;
  for (auto i = 0; i < rounds(300); ++i) {
    const auto text = R"({"version": 1, "default": "a", "policies": {"a": )" + writer.policy() +
                      R"(, "b\n\u00e9": {"extends": "a"}}, "endpoints": [
        {"name": "one", "match": {"host": "*.a", "port": 8080, "methods": ["GET", "PUT"]},
         "policy": )" +
                      writer.policy() +
                      R"(}, {"match": {"scheme": "http", "path": "/a/{b}/**"}, "policy": "a"},
        {"match": )" + writer.match() +
                      R"(, "policy": {"extends": "a", "repeat": "refused"}}]})";
    const auto checked = check_policies(text, "p.json");
    if (!checked.set) continue;
    ++good;
    check_round_trip(*checked.set);
  }
  CHECK(good > rounds(100));
}

TEST_CASE("a policy made in C++ is printed and read as the same") {
  ResolvedPolicy resolved;
  RetryPolicy policy;
  policy.max_attempts.reset();
  policy.backoff.initial = std::chrono::nanoseconds(1234567891);
  policy.retry_on.error_codes.clear();
  resolved.policy = std::make_shared<const RetryPolicy>(policy);
  check_round_trip(PolicySet(resolved));
  check_round_trip(PolicySet());
  CHECK_FALSE(PolicySet() == PolicySet(resolved));
}

TEST_CASE("the default is printed if it is not the built-in one") {
  const auto printed = [](const char* text) {
    return parse_policies(text, "p.json").value().print();
  };
  CHECK(PolicySet().print() == "{\n  \"version\": 1\n}\n");
  CHECK(printed(R"({"version": 1, "default": {"preset": "gcs"}})").find("\"preset\": \"gcs\"") !=
        std::string::npos);
  CHECK(printed(R"({"version": 1, "default": {"max_attempts": 2}})").find("\"preset\"") ==
        std::string::npos);
}

TEST_CASE("what an entry matches is printed on one line") {
  const auto set = parse_policies(
      R"({"version": 1, "endpoints": [{"match": {"host": "a", "port": 8080}, "policy": {}}]})",
      "p.json");
  CHECK(set.value().print().find("\n      \"match\": {\"host\": \"a\", \"port\": 8080},\n") !=
        std::string::npos);
}

TEST_CASE("where most statuses of a class are in a set, the others are printed") {
  const auto printed = [](const char* statuses) {
    const auto text =
        R"({"version": 1, "default": {"retry_on": {"statuses": [)" + std::string(statuses) + "]}}}";
    return parse_policies(text, "p.json").value().print();
  };
  CHECK(printed("\"549-599\"").find(R"(["5xx", "!500-548"])") != std::string::npos);
  CHECK(printed("\"550-599\"").find(R"(["550-599"])") != std::string::npos);
  CHECK(printed("\"500-589\"").find(R"(["5xx", "!590-599"])") != std::string::npos);
  CHECK(printed("\"5xx\", \"!501\"").find(R"(["5xx", "!501"])") != std::string::npos);
  CHECK(printed("599, 501, \"503-504\"").find(R"([501, "503-504", 599])") != std::string::npos);
}
