// --until: sends a request until the response meets a condition.
#pragma once

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <optional>
#include <string>

namespace httpretry::cli {

// "status=200" or "json:/state=DONE".
//
// A response that does not meet it is classified as pending: it is polled again, which counts
// neither for max_attempts nor for the budget. A `status` condition applies to all responses; a
// `json` condition to those below 400, so that an error stays an error. Transient failures are
// pending too. With `follow_redirects`, redirects are not tested.
struct PollCondition {
  // Throws UsageError.
  static PollCondition parse(const std::string& text);
  [[nodiscard]] bool met_by(const Response& response) const;
  [[nodiscard]] bool applies_to(const Response& response) const;

  int status = 0;       // 0: use `pointer`
  std::string pointer;  // of a scalar in the JSON body
  std::string value;
  bool follow_redirects = false;
};

// Makes `retry` poll until `condition` is met; without `interval`, as often as the policy says.
void poll_until(RetryOptions& options, PollCondition condition, std::optional<Duration> interval);
// Whether the last response met the condition; whether polling ended without that. Both are false
// for a response to which the condition does not apply.
bool condition_met(const Response& response);
bool condition_unmet(const Outcome& outcome);

}  // namespace httpretry::cli
