#include "tests/policy/policy_cases.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace httpretry;
using namespace httpretry::cases;

namespace {

// A bad text is refused with just the one line that names the problem.
void check_case(const Case& one, const std::string& file) {
  CAPTURE(one.text);
  const auto said = said_of(file);
  CAPTURE(said);
  if (one.problem.empty()) {
    CHECK(said.empty());
    return;
  }
  const auto checked = check_policies(file, "p.json");
  CHECK(checked.set.has_value() == (one.problem.find("warning: ") != std::string::npos));
  CHECK(said.find(one.problem) != std::string::npos);
}

}  // namespace

TEST_CASE("each rule for a policy lets good ones pass and names what is bad") {
  for (const auto& one : policies()) check_case(one, file_of(one.text));
}

TEST_CASE("each rule for a file lets good ones pass and names what is bad") {
  for (const auto& one : files()) check_case(one, std::string(one.text));
}

TEST_CASE("one mistake is told once") {
  for (const auto& one : policies()) {
    CAPTURE(one.text);
    const auto said = said_of(file_of(one.text));
    CAPTURE(said);
    CHECK(std::count(said.begin(), said.end(), '\n') == (one.problem.empty() ? 0 : 1));
  }
}

TEST_CASE("all problems are told at once, in the order of the file") {
  const auto said = said_of(R"({
  "version": 1,
  "policies": {
    "a": { "max_attemps": 3, "repeat": "maybe" },
    "b": { "extends": "c", "connect_timeout": 5 }
  },
  "endpoints": [{ "match": { "host": "*.*.com" }, "policy": "d" }]
})");
  CHECK(said ==
        "p.json:4:12: /policies/a/max_attemps: unknown key; did you mean \"max_attempts\"?\n"
        "p.json:4:40: /policies/a/repeat: \"maybe\" is not one of safe, always, never, refused\n"
        "p.json:5:23: /policies/b/extends: there is no policy \"c\"\n"
        "p.json:5:47: /policies/b/connect_timeout: 5 has no unit; write a string such as \"5s\"\n"
        "p.json:7:38: /endpoints/0/match/host: \"*.*.com\" is not a host pattern: a \"*\" must be "
        "a whole label between fixed ones, or the leading \"*.\"\n"
        "p.json:7:61: /endpoints/0/policy: there is no policy \"d\"\n");
}

TEST_CASE("a wrong member of most objects leaves the others in force") {
  const auto said = said_of(file_of(R"({"server_delay": {"spread": 2, "max": "2m"}})"));
  CHECK(said.find("/default/server_delay/spread: 2 is out of range: 0 to 1\n") !=
        std::string::npos);
  CHECK(said.find("/default/server_delay/max: server_delay.max (2m) is greater than "
                  "max_elapsed_time (1m)") != std::string::npos);
}

TEST_CASE("of syntax errors the first is told, and nothing else of the file") {
  CHECK(said_of(R"({
  "version": 2, // of the format
  "colour": 1,
})") == "p.json:2:17: JSON has no comments\n");
  CHECK(said_of("{\"version\": }") == "p.json:1:13: expected a value, found \"}\"\n");
  CHECK(said_of("{\"version\": 1+0,\n\"b\": 1}") ==
        "p.json:1:14: expected \",\" or \"}\", found \"+\"\n");
  CHECK(said_of("{\"version\": 1, \"policies\": {\"a\": {},}, }") ==
        "p.json:1:37: /policies: remove the comma before this\n");
}

TEST_CASE("a NUL byte does not end a file") {
  const auto behind = [](std::string text) { return said_of(text + '\0' + "{}"); };
  CHECK(behind("{\"version\": 1}") ==
        "p.json:1:15: trailing content: the file must contain one JSON value\n");
  CHECK(behind("{\"version\": 1") == "p.json:1:14: expected \",\" or \"}\", found \"\\u0000\"\n");
  CHECK(behind("{\"version\": \"").find("control character U+0000") != std::string::npos);
}

TEST_CASE("what can never matter is a warning, where somebody wrote it") {
  const auto said = said_of(file_of(
      R"({"max_elapsed_time": "10s", "max_attempts": 9, "server_delay": {"max": "11s"},
          "backoff": {"kind": "constant", "interval": "4s"}, "throttle_backoff": "none"})"));
  CHECK(said.find("/default/max_attempts: attempt 4 of 9 can never be reached") !=
        std::string::npos);
  CHECK(said.find("/default/server_delay/max: server_delay.max (11s) is greater than "
                  "max_elapsed_time (10s)") != std::string::npos);
  CHECK(said_of(file_of(R"({"max_elapsed_time": "10s"})")).empty());
  // The waits of attempts 1 and 2 take all of the time.
  const auto with_rule = [](const std::string& rule) {
    return said_of(file_of(R"({"max_elapsed_time": "10s", "max_attempts": 9, "elapsed_rule": ")" +
                           rule + R"(", "backoff": {"kind": "constant", "interval": "5s"},
                           "throttle_backoff": "none"})"));
  };
  CHECK(with_rule("include_wait").find("attempt 4 of 9 can never") != std::string::npos);
  CHECK(with_rule("clip_wait").find("attempt 4 of 9 can never") != std::string::npos);
  CHECK(with_rule("before_wait").find("attempt 5 of 9 can never") != std::string::npos);
  // Ten thousand attempts are looked at.
  const auto with_limit = [](const std::string& limit) {
    return said_of(file_of(R"({"max_attempts": 20000, "max_elapsed_time": ")" + limit +
                           R"(", "backoff": {"kind": "constant", "interval": "1s"},
                           "throttle_backoff": "none"})"));
  };
  CHECK(with_limit("9999s").empty());
  CHECK(with_limit("9998s").find("attempt 10000 of 20000 can never") != std::string::npos);
}

TEST_CASE("a budget of hedges that a bad hour would use up is a warning") {
  const auto said = [](const std::string& block) {
    return said_of(file_of(R"({"hedge": )" + block + "}"));
  };
  CHECK(said(R"({"after": "p90"})")
            .find("warning: /default/hedge/after: hedge.budget (0.05) is less than 0.2, twice the "
                  "share of calls that are slower than p90: if many are slow at once, many of them "
                  "get no hedge") != std::string::npos);
  CHECK(said(R"({"after": "p95", "budget": 0.09})")
            .find("/default/hedge/budget: hedge.budget (0.09) is less than 0.1") !=
        std::string::npos);
  CHECK(said(R"({"after": "p95", "budget": 0.1})").empty());
  CHECK(said(R"({"after": "p95", "budget": "none"})").empty());
  CHECK(said(R"({"after": "100ms", "budget": 0.01})").empty());
}

TEST_CASE("a key that would break a line is told on one line") {
  const auto said = said_of("{\"version\": 1, \"a\\u000ab\\u001b\": 1}");
  CHECK(said ==
        "p.json:1:16: /a\\u000ab\\u001b: unknown key; the keys are: $schema, version, default, "
        "policies, endpoints, tests\n");
}

TEST_CASE("a key of `match` that could not be read is no missing key") {
  const auto said = [](std::string_view match) {
    return said_of(R"({"version": 1, "endpoints": [{"match": )" + std::string(match) +
                   R"(, "policy": {}}]})");
  };
  CHECK(said(R"({"port": "443"})") ==
        "p.json:1:49: /endpoints/0/match/port: expected a number, found \"443\"; write "
        "443, without quotes\n");
  CHECK(said(R"({"method": "GET"})") ==
        "p.json:1:41: /endpoints/0/match/method: unknown key; did you mean \"methods\"?\n");
  CHECK(said(R"({"host": ["a", 7]})") ==
        "p.json:1:55: /endpoints/0/match/host/1: expected a host, found 7\n");
  CHECK(said(R"({"methods": ["GET", 7]})") ==
        "p.json:1:60: /endpoints/0/match/methods/1: expected a method, found 7\n");
  CHECK(said(R"({"scheme": "ftp", "host": "a*"})") ==
        "p.json:1:51: /endpoints/0/match/scheme: \"ftp\" is not one of http, https\n"
        "p.json:1:66: /endpoints/0/match/host: \"a*\" is not a host pattern: a \"*\" must be a "
        "whole label between fixed ones, or the leading \"*.\"\n");
}

TEST_CASE("the policy standard has its name where a file names it") {
  const auto url = Url::parse("http://a/").value();
  const auto name_in = [&](const char* text) {
    return parse_policies(text, "p.json").value().find("GET", url).name;
  };
  CHECK(name_in(R"({"version": 1})").empty());
  CHECK(name_in(R"({"version": 1, "default": "standard"})") == "standard");
  CHECK(
      name_in(R"({"version": 1, "endpoints": [{"match": {"host": "a"}, "policy": "standard"}]})") ==
      "standard");
  CHECK(name_in(R"({"version": 1, "default": {"preset": "standard"}})").empty());
}

TEST_CASE("a refused file is one error with a line for each problem") {
  const auto result = parse_policies(R"({"version": 2, "a": 1})", "p.json");
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Errc::InvalidRequest);
  CHECK(result.error().message ==
        "p.json:1:13: /version: 2 is not a version of this format: 1\n"
        "p.json:1:16: /a: unknown key; the keys are: $schema, version, default, policies, "
        "endpoints, tests");
  CHECK(PolicySet::load("/does/not/exist").error().message ==
        "cannot read the policy file /does/not/exist: No such file or directory");
}
