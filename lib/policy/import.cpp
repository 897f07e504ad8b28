#include "lib/policy/import.hpp"

#include "lib/policy/policy_set_data.hpp"

#include <utility>

namespace httpretry {

ImportedPolicies::ImportedPolicies(PolicySet set) : policies(std::move(set)) {}

Result<ImportedPolicies> policy_file::imported(const PolicySetBuilder& builder,
                                               Problems& problems) {
  const auto failed = problems.failed();
  auto found = problems.take();
  if (failed) return Error(Errc::InvalidRequest, error_lines(found));
  // What is fine there and not here, such as a timeout of an attempt that is over that of the call.
  auto built = builder.build("imported from " + problems.file());
  if (!built) return std::move(built.error());
  ImportedPolicies result(*std::move(built));
  result.json = result.policies.print();
  result.problems = std::move(found);
  return result;
}

}  // namespace httpretry
