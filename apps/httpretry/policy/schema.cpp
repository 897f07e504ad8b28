// policy schema: prints the JSON Schema of policy files.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <unistd.h>

namespace httpretry::cli {

FlagTable policy_schema_table() { return {{"Options", {help_flag()}}}; }

int policy_schema(const Args& args) {
  if (!parse(args, policy_schema_table()).empty())
    throw UsageError("policy schema takes no operands");
  std::string text(httpretry::policy_schema());
  if (!text.ends_with('\n')) text += '\n';
  write_stdout(text);
  return kOk;
}

}  // namespace httpretry::cli
