// --until: sends a request until the response meets a condition.
#pragma once

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <optional>
#include <string>

namespace httpretry::cli {

// "status=200", "status=2xx,304", "status!=503", "json:/state=DONE" or "json:/state!=RUNNING".
//
// A `status` condition applies to all responses; a `json` condition to those below 400, so that an
// error stays an error, and is not met where the value is missing. With `follow_redirects`,
// redirects are not tested.
struct PollCondition {
  // Throws UsageError, with the name of the option.
  static PollCondition parse(const std::string& text, const std::string& option,
                             bool follow_redirects = false);
  [[nodiscard]] bool met_by(const Response& response) const;
  [[nodiscard]] bool applies_to(const Response& response) const;

  StatusSet statuses;   // empty: use `pointer`
  std::string pointer;  // of a scalar in the JSON body
  std::string value;
  bool negated = false;
  bool follow_redirects = false;
};

// When to end the polls.
struct PollConditions {
  PollCondition until;
  std::optional<PollCondition> fail;  // goes before `until`
};

// Makes `retry` poll until a condition is met; without `interval`, as often as the policy says. A
// response that meets none is classified as pending: it is polled again, which counts neither for
// max_attempts nor for the budget. Transient failures are pending too. One that meets `fail` is
// classified as permanent.
void poll_until(RetryOptions& options, PollConditions conditions, std::optional<Duration> interval);
// Whether polling ended before there was an answer, by --until or by the policy.
bool ended_pending(const Outcome& outcome);

}  // namespace httpretry::cli
