#include <httpretry/retry/retry_policy.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("a policy that makes no sense is refused, with what is wrong") {
  struct Row {
    std::function<void(RetryPolicy&)> change;
    const char* wrong;
  };
  const std::vector<Row> rows{
      {[](RetryPolicy& p) { p.max_attempts = 0; }, "max_attempts is below 1"},
      {[](RetryPolicy& p) { p.max_elapsed_time = -1s; }, "one of its limits is below zero"},
      {[](RetryPolicy& p) { p.attempt_timeout = -1ns; }, "one of its limits is below zero"},
      {[](RetryPolicy& p) { p.server_delay.max = -1s; }, "one of its limits is below zero"},
      {[](RetryPolicy& p) { p.backoff.initial = -5ms; }, "a time of its backoff is below zero"},
      {[](RetryPolicy& p) { p.backoff.initial = 1min; },
       "its backoff begins above its max_interval"},
      {[](RetryPolicy& p) { p.throttle_backoff->max_interval = 1ms; },
       "its backoff begins above its max_interval"},
      {[](RetryPolicy& p) { p.backoff.low = 2; }, "the low of its backoff is over the high"},
      {[](RetryPolicy& p) { p.retry_on.pending.emplace().backoff.initial = -1s; },
       "a time of its backoff is below zero"}};
  for (const auto& row : rows) {
    RetryPolicy policy;
    row.change(policy);
    CHECK_THROWS_WITH_AS(check(policy),
                         (std::string("a retry policy cannot be used: ") + row.wrong).c_str(),
                         std::invalid_argument);
  }
}

TEST_CASE("what may be left out, or be without a limit, is no mistake") {
  RetryPolicy policy;
  CHECK_NOTHROW(check(policy));
  policy.max_attempts.reset();
  policy.max_elapsed_time = kForever;
  policy.throttle_backoff.reset();
  policy.backoff = Backoff();
  CHECK_NOTHROW(check(policy));
}
