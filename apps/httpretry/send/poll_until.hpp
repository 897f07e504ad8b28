// --until: sends a request until the response meets a condition.
#pragma once

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <optional>
#include <string>

namespace httpretry::cli {

// "status=200", "status=2xx,304", "status!=503", "json:/state=DONE" or "json:/state!=RUNNING".
//
// A `status` condition applies to all responses. A `json` condition applies to those below 400, so
// that an error stays an error, and is not met if the value is missing. With `follow_redirects`, no
// condition applies to redirects.
struct PollCondition {
  // Throws UsageError, with the name of the option.
  static PollCondition parse(const std::string& text, const std::string& option,
                             bool follow_redirects = false);
  [[nodiscard]] bool is_met_by(const Response& response) const;
  [[nodiscard]] bool applies_to(const Response& response) const;

  StatusSet statuses;   // empty: use `pointer`
  std::string pointer;  // of a scalar in the JSON body
  std::string value;
  bool negated = false;
  bool follow_redirects = false;
};

// The conditions that end polling.
struct PollConditions {
  PollCondition until;
  std::optional<PollCondition> fail;  // takes precedence over `until`
};

// Makes `retry` poll until a condition is met. Without `interval`, the policy sets the waits. A
// response that meets no condition is classified as pending, and so is a transient failure. Polling
// again counts neither for max_attempts nor for the budget. A response that meets `fail` is
// classified as permanent.
void poll_until(RetryOptions& options, PollConditions conditions, std::optional<Duration> interval);
// Returns whether polling ended while the response was still pending, by --until or by the policy.
bool ended_pending(const Outcome& outcome);

}  // namespace httpretry::cli
