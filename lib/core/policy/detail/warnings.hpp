// The warnings about a policy, for the program.
#pragma once

#include <httpretry/policy/policy_set.hpp>

#include <vector>

namespace httpretry::detail::policy_file {

// Returns the warnings about the values of a policy of the set, including those that it inherits.
HTTPRETRY_API std::vector<Problem> warnings_of(const PolicySet& set,
                                               const ResolvedPolicy& resolved);

}  // namespace httpretry::detail::policy_file
