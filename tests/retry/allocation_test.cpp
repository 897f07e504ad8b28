#include "allocations.hpp"

#include "tests/policy/temporary.hpp"

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>
#include <httpretry/retry/classify.hpp>
#include <httpretry/retry/decide.hpp>

#include <doctest/doctest.h>

using namespace httpretry;  // NOLINT

namespace {

long allocations_of(const Response& response) {
  const RetryPolicy policy;
  const Outcome outcome(response);
  const RetryState facts;
  const auto before = allocations();
  const auto classified = classify(policy, Observed(outcome, WallTime{}));
  const auto decision = decide(policy, classified, facts, Clocks{}, 0.5);
  static_cast<void>(decision);
  return allocations() - before;
}

}  // namespace

TEST_CASE("the ordinary outcomes are judged without allocating") {
  Response response(200, R"({"code": "SlowDown"})");
  response.headers = {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
                      {"Content-Type", "application/json"},
                      {"X-RateLimit-Remaining", "12"},
                      {"X-RateLimit-Reset", "1595320702"}};
  CHECK(allocations_of(response) == 0);
  response.status = 503;
  response.body = "Service Unavailable";
  CHECK(allocations_of(response) == 0);
  response.headers.add("Retry-After", "120");
  CHECK(allocations_of(response) == 0);
  response.status = 429;
  CHECK(allocations_of(response) == 0);
}

TEST_CASE("a policy is looked up without allocating, in a set and in a file that has not changed") {
  const std::string text =
      R"({"version": 1, "endpoints": [{"match": {"host": "*.a", "path": "/x/{id}"}, "policy": {}}]})";
  const TemporaryFile file(text);
  const PolicySource sources[] = {parse_policies(text, "p.json").value(),
                                  PolicySource::watch(file.path()).value()};
  const auto url = Url::parse("https://b.a/x/%31").value();
  for (const auto& source : sources) {
    // The first looks read the file once more, to see that it is at rest.
    Time now{};
    for (auto i = 0; i < 3; ++i) (void)source.current(now += std::chrono::seconds(1));
    const auto before = allocations();
    for (auto i = 0; i < 100; ++i) {
      const auto current = source.current(now += std::chrono::milliseconds(20));
      CHECK(current.policies.find("GET", url).endpoint == "/endpoints/0");
    }
    CHECK(allocations() == before);
  }
}
