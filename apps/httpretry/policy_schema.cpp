// policy schema: the JSON Schema of the policy file.
#include "args.hpp"
#include "exit_status.hpp"
#include "output.hpp"
#include "verbs.hpp"

#include <httpretry/policy_set.hpp>

#include <unistd.h>

namespace httpretry::cli {

int policy_schema(const Args& args) {
  if (!parse(args, {}).empty()) throw UsageError("policy schema takes nothing");
  std::string text(httpretry::policy_schema());
  if (!text.ends_with('\n')) text += '\n';
  write_all(STDOUT_FILENO, text, -1, "standard output");
  return kOk;
}

}  // namespace httpretry::cli
