// What a PolicySet holds, and how one is made of layers.
#pragma once

#include "lib/policy/layers.hpp"

#include <httpretry/policy/endpoint.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <memory>
#include <string>
#include <vector>

namespace httpretry {

struct PolicySet::Data {
  struct Entry {
    EndpointPattern pattern;
    ResolvedPolicy resolved;
    bool named = false;  // else `resolved.endpoint` is its pointer
  };

  ResolvedPolicy fallback;               // where no entry matches
  std::vector<ResolvedPolicy> policies;  // those with names, in the order of the file
  std::vector<Entry> entries;
  EndpointIndex index;  // of the entries
  std::vector<Problem> warnings;
};

namespace policy_file {

// What a builder has been told.
struct Layer {
  OrderedJson json = OrderedJson::object();
};

// Sets "backoff.initial" in objects in objects. The text is JSON where it parses, else a string.
void set_dotted(OrderedJson& object, std::string_view key, std::string_view text);

// What is below all policies.
const ResolvedPolicy& standard();

// As a file states it: what is read from it is the same policy.
OrderedJson write_policy(const ResolvedPolicy& resolved);

// Of an entry with a name.
std::string identity_of(std::string_view endpoint);

// What was read, as one result: the set, or a line for each error.
Result<PolicySet> set_of(CheckedPolicies checked);

// What both importers end with: the set that was built, with the problems of the report; or the
// errors among them.
Result<ImportedPolicies> imported(const PolicySetBuilder& builder, Problems& problems);

}  // namespace policy_file

// Through spdlog: at level info what was accepted, at level error what was not, and why.
void log_policy_reload(const PolicyReload& reload);

}  // namespace httpretry
