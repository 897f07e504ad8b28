// The verbs of the program, one file each. Each takes what stands behind its name and answers with
// the exit status; it throws UsageError for what cannot be understood.
#pragma once

#include <string>
#include <vector>

namespace httpretry::cli {

using Args = std::vector<std::string>;

int send(const Args& args);    // no word at all: URLs
int plan(const Args& args);    // plan
int policy(const Args& args);  // policy check|explain|presets|schema
int serve(const Args& args);   // serve

// The words behind `policy`.
int policy_check(const Args& args);
int policy_explain(const Args& args);
int policy_presets(const Args& args);
int policy_schema(const Args& args);

}  // namespace httpretry::cli
