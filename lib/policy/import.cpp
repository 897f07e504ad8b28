#include "lib/policy/import.hpp"

#include "lib/policy/policy_set_data.hpp"

#include <utility>

namespace httpretry {

ImportedPolicies::ImportedPolicies(PolicySet set) : policies(std::move(set)) {}

Result<ImportedPolicies> policy_file::imported(const PolicySetBuilder& builder, Problems& report) {
  const auto failed = report.failed();
  auto problems = report.take();
  if (failed) return Error(Errc::InvalidRequest, error_lines(problems));
  // What is fine there and not here, such as a timeout of an attempt that is over that of the call.
  auto built = builder.build("imported from " + report.file());
  if (!built) return std::move(built.error());
  ImportedPolicies result(*std::move(built));
  result.json = result.policies.print();
  result.problems = std::move(problems);
  return result;
}

}  // namespace httpretry
