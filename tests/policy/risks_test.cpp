// Warnings of policies that are valid, but dangerous.
#include "tests/policy/policy_cases.hpp"

#include <httpretry/policy/presets.hpp>

#include <doctest/doctest.h>

using namespace httpretry;

namespace {

std::string warnings_of(std::string_view file) {
  std::string lines;
  for (const auto& problem : check_policies(file, "p.json").problems) {
    CHECK(problem.warning);
    lines += to_string(problem) + "\n";
  }
  return lines;
}

// A policy, the key at which it gets its only warning, and the word that allows it; both are empty
// if it gets none.
struct Risk {
  std::string_view policy;  // without braces
  std::string_view key;
  std::string_view word;
};

// clang-format off
constexpr Risk kRisks[] = {
    {R"("budget": "none")", "budget", "no_budget"},
    {R"("budget": "none", "max_attempts": 1)", "", ""},
    {R"("budget": "none", "breaker": {"preset": "polly"})", "", ""},
    {R"("budget": "none", "adaptive": true)", "", ""},
    {R"("backoff": {"kind": "none"})", "backoff", "no_backoff"},
    {R"("backoff": {"kind": "constant", "interval": "0s"})", "backoff", "no_backoff"},
    {R"("backoff": {"initial": "0s"})", "backoff", "no_backoff"},
    {R"("backoff": {"kind": "linear", "initial": "0s", "increment": "1s"})", "", ""},
    {R"("throttle_backoff": {"kind": "none"})", "throttle_backoff", "no_backoff"},
    {R"("retry_on": {"pending": {"statuses": [202], "backoff": {"kind": "none"}}})", "retry_on/pending/backoff", "no_backoff"},
    {R"("max_elapsed_time": "none", "attempt_timeout": "5s")", "max_elapsed_time", "no_time_limit"},
    {R"("max_elapsed_time": "none", "attempt_timeout": "5s", "max_attempts": 1)", "", ""},
    {R"("max_elapsed_time": "none", "attempt_timeout": "5s", "retry_on": {"pending": {"statuses": [202]}}, "max_attempts": 1)", "retry_on/pending", "no_time_limit"},
    {R"("max_elapsed_time": "none", "attempt_timeout": "5s", "retry_on": {"pending": {"statuses": [202], "max": 5}}, "max_attempts": 1)", "", ""},
    {R"("max_elapsed_time": "none", "response_timeout": "5s")", "max_elapsed_time", "no_time_limit"},
    {R"("max_elapsed_time": "none")", "max_elapsed_time", "no_timeout"},
    {R"("preset": "curl", "attempt_timeout": "none")", "attempt_timeout", "no_timeout"},
    {R"("preset": "curl")", "", ""},
    {R"("repeat": "always")", "repeat", "repeat_always"},
    {R"("repeat": "always", "idempotency_key": "Idempotency-Key")", "", ""},
    {R"("preset": "azure", "max_attempts": 3)", "", ""},
    {R"("preset": "azure", "hedge": {"after": "1s", "methods": "all"})", "hedge/methods", "hedged_unsafe"},
    {R"("hedge": {"after": "1s", "methods": ["GET", "PATCH"]})", "hedge/methods", "hedged_unsafe"},
    {R"("hedge": {"after": "1s", "methods": "all"})", "", ""},
    {R"("hedge": {"after": "1s", "methods": ["POST"]}, "idempotency_key": "Idempotency-Key")", "", ""},
    {R"("hedge": {"after": "1s"}, "max_attempts": 1)", "hedge/after", "no_effect"},
    {R"("hedge": {"after": "1s"}, "max_attempts": 2)", "", ""},
    {R"("hedge": {"after": "1s"}, "repeat": "never")", "hedge/after", "no_effect"},
    {R"("hedge": {"after": "1s"}, "repeat": "refused")", "hedge/after", "no_effect"},
    {R"("priority": "high")", "priority", "no_effect"},
    {R"("priority": "normal")", "", ""},
    {R"("priority": "high", "breaker": {})", "", ""},
    {R"("pause": {"max": "20s"}, "server_delay": {"headers": []}, "max_attempts": 1)", "pause", "no_effect"},
    {R"("pause": "none", "server_delay": {"headers": []}, "max_attempts": 1)", "", ""},
    {R"("retry_on": {"statuses": ["2xx", "5xx"]})", "retry_on/statuses", "retried_status"},
    {R"("retry_on": {"statuses": ["5xx", 401]})", "retry_on/statuses", "retried_status"},
    {R"("retry_on": {"statuses": [200]})", "retry_on/statuses", "retried_status"},
    {R"("retry_on": {"statuses": [299]})", "retry_on/statuses", "retried_status"},
    {R"("retry_on": {"statuses": [199, 300]})", "", ""},
    {R"("retry_on": {"throttle_statuses": ["4xx"]})", "retry_on/throttle_statuses", "retried_status"},
    {R"("retry_on": {"statuses": ["4xx", "!400-401", "!404"]})", "", ""},
    {R"("server_delay": {"combine": "own"})", "server_delay/combine", "servers_ignored"},
    {R"("server_delay": {"headers": []})", "server_delay/headers", "servers_ignored"},
    {R"("connect_timeout": "6s", "attempt_timeout": "5s")", "connect_timeout", "no_effect"},
    {R"("attempt_timeout": "5s")", "", ""},  // the built-in connect_timeout is longer, which is harmless
    {R"("connect_timeout": "5s", "attempt_timeout": "5s")", "", ""},
    {R"("response_timeout": "6s", "attempt_timeout": "5s")", "response_timeout", "no_effect"},
    {R"("response_timeout": "61s")", "response_timeout", "no_effect"},
    {R"("connect_timeout": "61s")", "connect_timeout", "no_effect"},
    {R"("connect_timeout": "61s", "elapsed_rule": "clip_wait")", "", ""},  // the last attempt may begin at the limit
    {R"("connect_timeout": "61s", "elapsed_rule": "before_wait", "attempt_timeout": "5s")", "connect_timeout", "no_effect"},
    {R"("attempt_timeout": "60s")", "attempt_timeout", "no_effect"},
    {R"("attempt_timeout": "60s", "max_attempts": 1)", "", ""},
    {R"("attempt_timeout": "60s", "elapsed_rule": "before_wait")", "", ""},
    {R"("attempt_timeout": "55s", "backoff": {"initial": "5s", "jitter": "none"})", "attempt_timeout", "no_effect"},
    {R"("attempt_timeout": "54s", "backoff": {"initial": "5s", "jitter": "none"})", "", ""},
    {R"("attempt_timeout": "55s", "backoff": {"initial": "5s", "jitter": "none"}, "elapsed_rule": "clip_wait")", "", ""},
    {R"("backoff": {"kind": "constant", "interval": "2m"}, "throttle_backoff": "none")", "backoff", "no_effect"},
    {R"("backoff": {"kind": "constant", "interval": "1m"}, "throttle_backoff": "none")", "", ""},  // attempt 2 can be made
    {R"("backoff": {"kind": "constant", "interval": "2m"}, "throttle_backoff": {"kind": "constant", "interval": "1s"})", "", ""},
    {R"("backoff": {"kind": "constant", "interval": "1s"}, "throttle_backoff": {"kind": "constant", "interval": "2m"})", "", ""},
    {R"("max_attempts": "unlimited", "backoff": {"kind": "constant", "interval": "2m"}, "throttle_backoff": "none")", "max_attempts", "no_effect"},
    {R"("max_elapsed_time": "5s", "server_delay": {"max": "9s"})", "server_delay/max", "no_effect"},
    {R"("max_elapsed_time": "5s", "server_delay": {"max": "9s"}, "elapsed_rule": "before_wait")", "", ""},
    {R"("retry_on": {"pending": {"statuses": [202], "backoff": {"interval": "2m"}}})", "retry_on/pending/backoff", "no_effect"},
    {R"("retry_on": {"pending": {"statuses": [202], "backoff": {"interval": "1m"}}})", "", ""},
    {R"("retry_on": {"pending": {"statuses": [202], "backoff": {"interval": "2m"}}}, "server_delay": {"combine": "server"})", "", ""},
};
// clang-format on

}  // namespace

TEST_CASE("each risk is a warning at the key that settles it, and can be allowed on purpose") {
  for (const auto& row : kRisks) {
    CAPTURE(row.policy);
    const auto said = warnings_of(cases::file_of("{" + std::string(row.policy) + "}"));
    CAPTURE(said);
    CHECK(std::count(said.begin(), said.end(), '\n') == (row.key.empty() ? 0 : 1));
    CHECK(said.find("warning: /default/" + std::string(row.key) + ": ") ==
          (row.key.empty() ? said.npos : said.find("warning: ")));
    if (row.key.empty()) continue;
    const auto allow = R"("allow": [")" + std::string(row.word) + "\"]";
    CHECK(warnings_of(cases::file_of("{" + std::string(row.policy) + ", " + allow + "}")).empty());
  }
}

TEST_CASE("a warning says what happens, what to set, and how to allow it") {
  CHECK(
      warnings_of(cases::file_of(R"({"budget": "none"})")) ==
      "p.json:1:38: warning: /default/budget: while a server fails, the retries multiply its load "
      "by up to 5; set \"budget\" or \"breaker\"; \"allow\": [\"no_budget\"] silences this\n");
  CHECK(
      warnings_of(cases::file_of(R"({"retry_on": {"statuses": [400, 404, 500]}})")) ==
      "p.json:1:53: warning: /default/retry_on/statuses: after 400, 404, the same request gets the "
      "same response again; exclude them with \"!400\", \"!404\"; \"allow\": [\"retried_status\"] "
      "silences this\n");
  CHECK(warnings_of(cases::file_of(R"({"response_timeout": "61s"})")) ==
        "p.json:1:48: warning: /default/response_timeout: response_timeout (1m1s) is greater than "
        "max_elapsed_time (1m); \"allow\": [\"no_effect\"] silences this\n");
}

TEST_CASE("presets get no warnings") {
  for (const auto& preset : presets()) {
    CAPTURE(preset.name);
    CHECK(
        warnings_of(cases::file_of(R"({"preset": ")" + std::string(preset.name) + "\"}")).empty());
  }
}

TEST_CASE("a policy that nothing uses is a warning, unless it is allowed") {
  CHECK(warnings_of(R"({"version": 1, "policies": {"a": {"max_attempts": 2}}})") ==
        "p.json:1:34: warning: /policies/a: neither an endpoint nor the default uses this policy; "
        "\"allow\": [\"unused\"] silences this\n");
  CHECK(warnings_of(R"({"version": 1, "policies": {"a": {"allow": ["unused"]}}})").empty());
}

TEST_CASE("a policy inherits what is allowed, and a set keeps it") {
  constexpr std::string_view kFile = R"({"version": 1, "default": "b", "policies": {
      "a": {"budget": "none", "allow": ["no_budget"]}, "b": {"extends": "a", "max_attempts": 2}}})";
  CHECK(warnings_of(kFile).empty());
  const auto set = parse_policies(kFile, "p.json").value();
  // Printed, "b" no longer extends "a", which nothing else uses.
  CHECK(warnings_of(set.print()).find("no_budget") == std::string::npos);
  const auto* const allow = set.named("b")->values.find("allow");
  REQUIRE(allow != nullptr);
  CHECK(allow->json == R"(["no_budget"])");
  CHECK(allow->source == "p.json:2:40");
  const std::pair<std::string, std::string> setting{"max_attempts", "3"};
  const auto changed = with_settings(set, {&setting, 1}, "--set").value();
  CHECK(changed.named("b")->values.find("allow")->source == "p.json:2:40");
}

TEST_CASE("a value that a policy inherits can lose its effect in it") {
  const auto said = warnings_of(R"({"version": 1, "default": "a", "policies": {
      "base": {"connect_timeout": "9s"},
      "a": {"extends": "base", "max_elapsed_time": "5s"}}})");
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  CHECK(said.find("warning: /policies/a/max_elapsed_time: connect_timeout (9s) is greater than "
                  "max_elapsed_time (5s); ") != std::string::npos);
}

TEST_CASE("words of allow that do not exist are errors") {
  CHECK(cases::said_of(cases::file_of(R"({"allow": ["no_budgt"]})"))
            .find("/default/allow/0: \"no_budgt\" is not one of no_budget, ") != std::string::npos);
  CHECK(cases::said_of(cases::file_of(R"({"allow": []})")) ==
        "p.json:1:37: /default/allow: an empty list allows none; leave it out\n");
}
