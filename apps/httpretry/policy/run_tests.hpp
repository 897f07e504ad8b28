// Runs the tests of a policy file, in virtual time as `plan` does.
#pragma once

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_test.hpp>

#include <string>
#include <vector>

namespace httpretry::cli {

// A line for each expectation that does not hold; empty if all do. `file` is for advice.
std::string run_tests(const PolicySet& policies, const std::vector<PolicyTest>& tests,
                      const std::string& file);

}  // namespace httpretry::cli
