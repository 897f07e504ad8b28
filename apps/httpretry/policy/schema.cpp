// httpretry policy schema: prints the JSON Schema of policy files.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"

#include <httpretry/policy/policy_set.hpp>

namespace httpretry::cli {

int policy_schema(const Args& args) {
  if (!parse(args, help_only()).empty()) throw UsageError("policy schema takes no operands");
  std::string text(httpretry::policy_schema());
  if (!text.ends_with('\n')) text += '\n';
  write_stdout(text);
  return kOk;
}

}  // namespace httpretry::cli
