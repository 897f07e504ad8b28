// AWS's specification of its retry modes, as the tests of its SDKs play it: the loop in miniature,
// with classify, decide and a budget, and the random number at its most.
//
// Of the published scenarios these are left out:
//   long-polling backoff with an empty bucket   our calls return at once when the budget is empty
//   clock-skew correction                       signing requests is not ours
#include <httpretry/retry/budget.hpp>
#include <httpretry/retry/decide.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using namespace httpretry;  // NOLINT

namespace {

struct Step {
  int status;
  const char* outcome;
  std::int64_t quota;
  Duration delay;
  Headers headers = {};
};

// smithy-kotlin's "new-retries" tests; botocore's TestRetryQuotaChecker.
RetryPolicy standard_2_0(int max_attempts) {
  RetryPolicy policy;
  policy.max_attempts = max_attempts;
  policy.max_elapsed_time = kForever;
  policy.backoff.initial = 1s;
  policy.backoff.max_interval = 20s;
  policy.throttle_backoff.reset();
  policy.repeat = Repeat::Always;
  policy.budget.retry_cost = policy.budget.throttle_cost = 5'000;
  policy.budget.timeout_cost = 10'000;
  return policy;
}

RetryPolicy standard_2_1(int max_attempts) {
  auto policy = standard_2_0(max_attempts);
  policy.backoff.initial = 50ms;
  policy.throttle_backoff = policy.backoff;
  policy.throttle_backoff->initial = 1s;
  policy.budget.retry_cost = policy.budget.timeout_cost = 14'000;
  policy.server_delay.max_over_own = 5s;
  return policy;
}

// A step with the outcome "success" ends a call; the next step begins another.
void play(const RetryPolicy& policy, std::int64_t tokens, const std::vector<Step>& steps) {
  auto started_with = policy.budget;
  started_with.capacity = tokens * 1000;
  Budget bucket(started_with);
  BudgetClaim claim;
  RetryState facts;
  for (const auto& step : steps) {
    Response response(step.status);
    response.headers = step.headers;
    const Outcome outcome(response);
    const auto classified = classify(policy, Observed(outcome, {}));
    const auto decision = decide(policy, classified, facts, {}, 1);

    std::string result = decision.retry ? "retry_request" : std::string(to_string(decision.reason));
    if (decision.retry && !bucket.take(claim, classified.cls, classified.timeout, Time())) {
      result = "retry_quota_exceeded";
    }
    if (decision.reason == Reason::Success && !decision.retry) {
      bucket.settle(claim, Class::Success, Time());
    }

    CHECK(result == std::string(step.outcome));
    CHECK(bucket.left(Time()) == step.quota * 1000);
    if (decision.retry) CHECK(decision.wait == step.delay);
    ++facts.failures;
    if (decision.reason == Reason::Success && !decision.retry) {
      facts = {};
      claim = {};
    }
  }
}

constexpr auto* kRetry = "retry_request";

}  // namespace

TEST_CASE("AWS standard mode 2.0") {
  play(standard_2_0(3), 500,
       {{500, kRetry, 495, 1s}, {500, kRetry, 490, 2s}, {200, "success", 495, {}}});
  play(standard_2_0(3), 500,
       {{502, kRetry, 495, 1s}, {502, kRetry, 490, 2s}, {502, "attempts_exhausted", 490, {}}});
  play(standard_2_0(3), 5, {{500, kRetry, 0, 1s}, {502, "retry_quota_exceeded", 0, 2s}});
  play(standard_2_0(5), 500,
       {{500, kRetry, 495, 1s},
        {500, kRetry, 490, 2s},
        {500, kRetry, 485, 4s},
        {500, kRetry, 480, 8s},
        {500, "attempts_exhausted", 480, {}}});
}

TEST_CASE("AWS standard mode 2.1") {
  play(standard_2_1(3), 500,
       {{500, kRetry, 486, 50ms}, {500, kRetry, 472, 100ms}, {200, "success", 486, {}}});
  play(standard_2_1(3), 500,
       {{502, kRetry, 486, 50ms}, {502, kRetry, 472, 100ms}, {502, "attempts_exhausted", 472, {}}});
  play(standard_2_1(3), 14, {{500, kRetry, 0, 50ms}, {500, "retry_quota_exceeded", 0, 100ms}});
  play(standard_2_1(5), 20, {{500, kRetry, 6, 50ms}, {502, "retry_quota_exceeded", 6, 100ms}});
  play(standard_2_1(5), 30,
       {{500, kRetry, 16, 50ms},
        {502, kRetry, 2, 100ms},
        {200, "success", 16, {}},
        {500, kRetry, 2, 50ms},
        {200, "success", 16, {}}});
  play(standard_2_1(2), 500, {{404, "not_retryable", 500, {}}});
}

TEST_CASE("AWS standard mode 2.1 bounds the wait at 200 ms where it is told to") {
  auto policy = standard_2_1(5);
  policy.backoff.max_interval = 200ms;
  play(policy, 500,
       {{500, kRetry, 486, 50ms},
        {500, kRetry, 472, 100ms},
        {500, kRetry, 458, 200ms},
        {500, kRetry, 444, 200ms},
        {500, "attempts_exhausted", 444, {}}});
}

// smithy-kotlin's newStandardRetryMultiThreadedTestCases: one call gets 500, 500, 200, another 500,
// 200, and the order does not matter. (That threads lose no token is the client's to show.)
TEST_CASE("two calls that share a bucket leave the same in it, whatever their order") {
  const auto policy = standard_2_1(5);
  const std::array<std::vector<int>, 2> answers{{{500, 500, 200}, {500, 200}}};
  std::vector<std::size_t> order = {0, 0, 0, 1, 1};  // whose answer comes
  int orders = 0;
  do {
    Budget bucket(policy.budget);
    std::array<BudgetClaim, 2> claims;
    std::array<std::size_t, 2> told{};
    for (const auto call : order) {
      const auto status = answers.at(call).at(told.at(call)++);
      const Outcome outcome{Response(status)};
      const auto classified = classify(policy, Observed(outcome, {}));
      if (classified.cls == Class::Success) {
        bucket.settle(claims.at(call), Class::Success, Time());
      } else {
        CHECK(bucket.take(claims.at(call), classified.cls, classified.timeout, Time()));
      }
    }
    CHECK(bucket.left(Time()) == 486'000);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(orders == 10);
}

TEST_CASE("AWS's throttles wait longer and cost less") {
  play(standard_2_1(3), 500,
       {{400, kRetry, 495, 1s, {{"x-amzn-errortype", "Throttling"}}}, {200, "success", 500, {}}});
}

TEST_CASE("x-amz-retry-after is bounded by our own wait and five seconds more") {
  const auto told = [](const char* value, Duration wait) {
    play(standard_2_1(3), 500,
         {{500, kRetry, 486, wait, {{"x-amz-retry-after", value}}}, {200, "success", 500, {}}});
  };
  told("0", 50ms);
  told("1500", 1500ms);
  told("10000", 5050ms);
  told("99999999999999999999", 5050ms);
  told("invalid", 50ms);
}

TEST_CASE("AWS's waits double up to 20 s") {
  const std::vector<Duration> old = {1s, 2s, 4s, 8s, 16s, 20s, 20s, 20s, 20s};
  const std::vector<Duration> now = {50ms,   100ms,  200ms,   400ms, 800ms, 1600ms,
                                     3200ms, 6400ms, 12800ms, 20s,   20s};
  for (std::size_t i = 0; i < old.size(); ++i) {
    CHECK(delay(standard_2_0(3).backoff, static_cast<int>(i) + 1, {}, 1) == old[i]);
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    CHECK(delay(standard_2_1(3).backoff, static_cast<int>(i) + 1, {}, 1) == now[i]);
  }
}
