// A policy is not silently without its guards because the chain of the client lacks their stage.
#include "conversation.hpp"
#include "heard.hpp"

#include "tests/policy/temporary.hpp"

#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

PolicySet parsed(const std::string& json) { return parse_policies(json, "policy.json").value(); }

PolicySet with_default(const std::string& policy) {
  return parsed(R"({"version": 1, "default": )" + policy + "}");
}

// Why a client with this chain cannot be made; empty if it can.
std::string problem_of(std::vector<MiddlewarePtr> chain) {
  try {
    Conversation().client(std::move(chain));
    return {};
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a chain without the stage for a setting of its policies is refused") {
  struct Row {
    const char* policy;
    const char* setting;
    const char* stage;
  };
  for (const auto& row :
       {Row{R"({"rate": {"limit": "10/s"}})", "rate", "guards()"},
        Row{R"({"breaker": {"kind": "consecutive", "failures": 5}})", "breaker", "guards()"},
        Row{R"({"concurrency": {"max": 4}})", "concurrency", "guards()"},
        Row{R"({"pause": {"max": "5s"}})", "pause", "guards()"},
        Row{R"({"hedge": {"after": "50ms"}})", "hedge", "hedge()"}}) {
    CAPTURE(row.setting);
    const auto policies = with_default(row.policy);
    CHECK(problem_of({redirect(), retry(policies)}) ==
          std::string("the chain of the client lacks ") + row.stage +
              ", so these settings would have no effect: " + row.setting +
              " of the default policy (policy.json:1:27). Add " + row.stage +
              " below retry(), or turn the settings off with \"none\"");
    CHECK(problem_of({redirect(), retry(policies), hedge(), guards()}).empty());

    ClientOptions options;  // not those of retry(), but of the client
    options.policies = policies;
    CHECK_NOTHROW(Client{options});
    options.middlewares = {redirect(), retry(), timeout(2s)};
    CHECK_THROWS_AS(Client{options}, std::invalid_argument);
  }
}

TEST_CASE("the default pause and settings that are \"none\" need no stage") {
  CHECK(problem_of({retry()}).empty());
  for (const auto* policy :
       {R"({"max_attempts": 3})", R"({"pause": "none"})", R"({"pause": {"max": "1m"}})",
        R"({"rate": "none", "breaker": "none", "hedge": "none", "concurrency": "none"})",
        R"({"priority": "high"})"}) {
    CAPTURE(std::string(policy));
    CHECK(problem_of({retry(with_default(policy))}).empty());
  }
}

TEST_CASE("one message names every policy with a forgotten guard, inherited ones included") {
  const auto problem = problem_of({retry(parsed(R"({"version": 1,
  "policies": {
    "base": {"rate": {"limit": "10/s"}},
    "child": {"extends": "base", "breaker": {"kind": "consecutive", "failures": 5}},
    "plain": {"extends": "base", "rate": "none"},
    "unused": {"hedge": {"after": "50ms"}}
  },
  "default": "plain",
  "endpoints": [
    {"match": {"path": "/a"}, "policy": "child"},
    {"match": {"path": "/b"}, "policy": "child"},
    {"name": "own", "match": {"path": "/c"}, "policy": {"extends": "base", "hedge": {"after": "50ms"}}},
    {"match": {"path": "/d"}, "policy": "plain"}
  ]})"))});
  CHECK(problem ==
        "the chain of the client lacks guards() and hedge(), so these settings would have no "
        "effect: rate and breaker of the policy \"child\" (policy.json:4:14); hedge and rate of "
        "the endpoint \"own\" (policy.json:12:56). Add guards() and hedge() below retry(), or turn "
        "the settings off with \"none\"");
}

TEST_CASE("a policy in code is held to the same") {
  RetryPolicy policy;
  policy.guards.rate.emplace();
  CHECK(mentions(problem_of({retry(policy)}), "rate of the default policy. Add guards()"));
  CHECK(problem_of({retry(policy), guards()}).empty());
}

TEST_CASE("a request's own policy is refused if the chain lacks a stage that it needs") {
  auto policy = std::make_shared<RetryPolicy>();
  policy->guards.breaker.emplace();
  auto request = Request::get("http://x/");
  request.edit_options().policy = policy;
  CallOptions options;
  options.policy = policy;

  Conversation talk;
  auto without = talk.client({redirect(), retry(), timeout(2s)});
  for (const auto& outcome :
       {without.send(request), without.send(Request::get("http://x/"), options)}) {
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
    CHECK(outcome.error().message ==
          "the chain of the client lacks guards(), so these settings would have no effect: breaker "
          "of the policy of the request. Add guards() below retry(), or turn the settings off with "
          "\"none\"");
  }
  CHECK(Conversation().client({}).send(request).error().code == Errc::InvalidRequest);
  CHECK(talk.sends() == 0);

  talk.network->say(Response(200));
  CHECK(talk.client({redirect(), retry(), guards(), timeout(2s)}).send(request)->status == 200);
}

TEST_CASE("a policy file that gets a setting without a stage is warned of, once") {
  const Heard log;
  const std::string begin = R"({"version": 1, "default": )";
  const TemporaryFile file(begin + R"({"max_attempts": 2}})");
  Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({retry(PolicySource::watch(file.path()).value())});
  CHECK(client.get("http://x/")->status == 200);
  CHECK(log.text().empty());

  file.replace(begin + R"({"rate": {"limit": "10/s"}}})");
  talk.clock->advance(1s);
  CHECK(client.get("http://x/")->status == 200);
  CHECK(client.get("http://x/")->status == 200);
  CHECK(log.text() ==
        "info: httpretry: the policies of " + file.path() +
            " were reloaded\nwarning: httpretry: after " + file.path() +
            " was reloaded, the chain of the client lacks guards(), so these settings would have "
            "no effect: rate of the default policy (" +
            file.path() +
            ":1:27). Add guards() below retry(), or turn the settings off with \"none\"\n");
}
