// What both importers end with.
#pragma once

#include "lib/json/problems.hpp"

#include <httpretry/policy/policy_set.hpp>

namespace httpretry::policy_file {

// The set that was built, with the problems of the report; or the errors among them.
Result<ImportedPolicies> imported(const PolicySetBuilder& builder, Problems& problems);

}  // namespace httpretry::policy_file
