// policy check FILE...: prints a line for each problem in the files, and runs their tests.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"
#include "policy/run_tests.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <unistd.h>

namespace httpretry::cli {
namespace {

std::string counted(std::size_t count, const char* one, const char* several) {
  return std::to_string(count) + ' ' + (count == 1 ? one : several);
}

std::string ok_line(const PolicySet& set, std::size_t tests) {
  return "ok: " + counted(set.policy_count(), "policy", "policies") + ", " +
         counted(set.endpoint_count(), "endpoint", "endpoints") +
         (tests == 0 ? "" : ", " + counted(tests, "test", "tests")) + '\n';
}

// A line for each problem of a file, or for what its tests expect and do not get. On a terminal a
// line says that there is no error; in scripts silence does.
std::string check_file(const std::string& file, bool name_it, int& status) {
  const auto checked = check_policies(read_policy_file(file), file);
  std::string lines;
  for (const auto& problem : checked.problems) lines += to_string(problem) + '\n';
  const auto failures = checked.set ? run_tests(*checked.set, checked.tests, file) : "";
  if (!checked.set || !failures.empty()) {
    status = kFailed;
  } else if (::isatty(STDOUT_FILENO) == 1) {
    lines += (name_it ? printable(file) + ": " : "") + ok_line(*checked.set, checked.tests.size());
  }
  return lines + failures;
}

}  // namespace

int policy_check(const Args& args) {
  const auto files = parse(args, help_only());
  if (files.empty()) throw UsageError("policy check needs at least one FILE");
  std::string lines;
  int status = kOk;
  for (const auto& file : files) {
    try {
      lines += check_file(file, files.size() > 1, status);
    } catch (const BadPolicyFile& error) {
      lines += error.what();
      status = kFailed;
    }
  }
  write_stdout(lines);
  return status;
}

}  // namespace httpretry::cli
