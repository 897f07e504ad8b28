// policy check FILE...: prints a line for each problem in the files.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <unistd.h>

namespace httpretry::cli {

int policy_check(const Args& args) {
  const auto files = parse(args, help_only());
  if (files.empty()) throw UsageError("policy check needs at least one FILE");
  std::string lines;
  int status = kOk;
  for (const auto& file : files) {
    try {
      const auto checked = check_policies(read_policy_file(file), file);
      for (const auto& problem : checked.problems) lines += to_string(problem) + '\n';
      if (!checked.set) status = kFailed;
    } catch (const BadPolicyFile& error) {
      lines += error.what();
      status = kFailed;
    }
  }
  write_stdout(lines);
  return status;
}

}  // namespace httpretry::cli
