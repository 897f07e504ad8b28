// policy: the verbs about policy files.
#include "args.hpp"
#include "exit_status.hpp"
#include "verbs.hpp"

#include <cstdio>

namespace httpretry::cli {
namespace {

int help() {
  std::fputs(
      "httpretry policy check FILE...                              say what is wrong with them\n"
      "httpretry policy explain FILE METHOD URL [--format json]    which policy wins, and why\n"
      "httpretry policy presets [NAME]                             list them, or print one\n"
      "httpretry policy schema                                     the format's JSON Schema\n",
      stdout);
  return kOk;
}

}  // namespace

int policy(const Args& args) {
  if (args.empty()) throw UsageError("policy: one of check, explain, presets, schema is missing");
  const auto& verb = args.front();
  const Args rest(args.begin() + 1, args.end());
  if (verb == "check") return policy_check(rest);
  if (verb == "explain") return policy_explain(rest);
  if (verb == "presets") return policy_presets(rest);
  if (verb == "schema") return policy_schema(rest);
  if (verb == "-h" || verb == "--help") return help();
  const auto near = nearest(verb, {"check", "explain", "presets", "schema"});
  throw UsageError("policy: \"" + verb + "\" is unknown" +
                   (near.empty() ? "" : "; did you mean " + near + "?"));
}

}  // namespace httpretry::cli
