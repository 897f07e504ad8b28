// What the checks of a policy share: where to report that its values contradict each other.
#pragma once

#include "lib/policy/policy_set_data.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

namespace httpretry::policy_file {

// "attempt_timeout (10s) is over max_elapsed_time (5s)"
std::string over(std::string_view key, Duration value, std::string_view limit, Duration most);

class PolicyChecker {
 protected:
  using Parts = std::initializer_list<const Layered*>;

  PolicyChecker(const Layered& layered, const JsonNode& policy, Problems& problems)
      : layered_(layered), policy_(policy), problems_(problems) {}

  void check_backoff(const Layered* object, const Backoff& backoff);
  // By the user: what is from a preset or built in is not the user's mistake.
  [[nodiscard]] bool written(const Layered* value) const;
  void error(Parts parts, std::string message);
  void warn(Parts parts, std::string message);

  const Layered& layered_;
  const JsonNode& policy_;

 private:
  [[nodiscard]] const JsonNode* reported_at(Parts parts) const;
  static bool doubtful(Parts parts);

  Problems& problems_;
};

void check_hedge(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                 Problems& problems);
// Those of pause, rate, concurrency and breaker.
void check_guards(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                  Problems& problems);

}  // namespace httpretry::policy_file
