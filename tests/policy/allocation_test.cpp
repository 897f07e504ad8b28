#include "allocations.hpp"

#include <httpretry/classify.hpp>
#include <httpretry/retry.hpp>

#include <doctest/doctest.h>

using namespace httpretry;  // NOLINT

namespace {

long allocations_of(const Response& response) {
  const RetryPolicy policy;
  const Outcome outcome(response);
  const AttemptFacts facts;
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
