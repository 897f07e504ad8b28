// PolicyCheck, the base of the checks of a policy: looks up values and reports problems.
#pragma once

#include "policy_set_data.hpp"

#include <initializer_list>

namespace httpretry::detail::policy_file {

// The base of the classes that check a policy.
struct PolicyCheck {
  const Layered& layered;       // the values with their layers
  const RetryPolicy& resolved;  // the same values
  const JsonNode& policy;       // the top layer
  Problems& problems;
  std::vector<Problem>& warnings;  // those about this policy

  // The keys of a problem, for example "max_elapsed_time" and "backoff.initial".
  using Keys = std::initializer_list<std::string>;

  // Returns the value of a key, or nullptr if no layer has it.
  [[nodiscard]] const Layered* at(std::string_view key) const;
  // Returns whether the user wrote the value. The value of a preset is not the user's mistake.
  [[nodiscard]] bool is_written(std::string_view key) const;

  // Reports a problem at the first of its keys that is in `policy`, otherwise at the first one in a
  // file. Without such a place, an error is reported at `policy`, and a warning is dropped. A
  // warning is also dropped if the policy allows it; otherwise its text says how to allow it.
  void error(Keys keys, std::string message) const;
  void warn(Warning warning, Keys keys, std::string message) const;

 private:
  [[nodiscard]] const JsonNode* place_of(Keys keys) const;
  [[nodiscard]] bool is_doubtful(Keys keys) const;
};

// Warns of a policy that is valid, but harmful to servers or callers.
void check_risks(const PolicyCheck& check);

}  // namespace httpretry::detail::policy_file
