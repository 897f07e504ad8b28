// --until: what an answer must be for the asking to end.
#pragma once

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <optional>
#include <string>

namespace httpretry::cli {

// "status=200", "json:/state=DONE". Throws UsageError.
//
// An answer for which it does not hold is pending: asked for again after a while, outside
// max_attempts and the budget. For `status` that is any answer; for `json`, any below 400, so that
// an error stays an error. So is a failure that passes. With `follows` a redirect is on its way to
// the answer.
struct Until {
  static Until parse(const std::string& text);
  [[nodiscard]] bool holds(const Response& response) const;
  [[nodiscard]] bool concerns(const Response& response) const;

  int status = 0;       // 0: the pointer counts
  std::string pointer;  // of a scalar in the JSON body
  std::string value;
  bool follows = false;
};

// Classifies as ever, and then by `until`. Asks at that `interval`, where one is given.
void poll_until(RetryOptions& options, Until until, std::optional<Duration> interval);
// Whether it held for the last answer; whether it did not, and nobody asked again. An answer that
// it does not concern is neither.
bool held(const Response& response);
bool never_held(const Outcome& outcome);

}  // namespace httpretry::cli
