// The base of the checks of a policy: gives them its values, and reports values that contradict
// each other.
#pragma once

#include "lib/policy/policy_set_data.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

namespace httpretry::policy_file {

struct PolicyChecker {
  // Values that contradict each other: "max_elapsed_time", "backoff.initial".
  using Keys = std::initializer_list<std::string>;

  // Returns nullptr if no layer has the value.
  [[nodiscard]] const Layered* at(std::string_view key) const;
  // Returns whether the user wrote the value: one of a preset is not the user's mistake.
  [[nodiscard]] bool written(std::string_view key) const;
  // Reports the problem at the first of the values that stands in `policy`; if none does, at the
  // first in a layer of a file. An error needs no such place.
  void error(Keys keys, std::string message) const;
  void warn(Keys keys, std::string message) const;

  void check_backoff(const std::string& key, const Backoff& backoff) const;

  const Layered& layered;
  const RetryPolicy& resolved;
  const JsonNode& policy;
  Problems& problems;

 private:
  [[nodiscard]] const JsonNode* place_of(Keys keys) const;
  [[nodiscard]] bool doubtful(Keys keys) const;
};

// "attempt_timeout (10s) is over max_elapsed_time (5s)"
std::string over(std::string_view key, Duration value, std::string_view limit, Duration most);

// Checks pause, rate, concurrency, breaker, priority and hedge.
void check_guards(const PolicyChecker& checker);

}  // namespace httpretry::policy_file
