// Which budgets a policy file has changed.
#pragma once

#include <httpretry/policy/policy_set.hpp>

#include <vector>

namespace httpretry::policy_file {

// Adds the budgets of policies that are in both sets, with other numbers of the same kind and
// scope.
void add_changed_budgets(std::vector<ChangedBudget>& changes, const PolicySet& before,
                         const PolicySet& after);

}  // namespace httpretry::policy_file
