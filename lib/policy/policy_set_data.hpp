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

// The policy of a preset, or of what lies below everything, as if it had been read.
ResolvedPolicy resolved_preset(std::string_view name);
const ResolvedPolicy& standard();

// Every value that counts, and no other: what it is printed with is read as the same policy.
// `indent` is put before all lines but the first.
std::string print_policy(const ResolvedPolicy& resolved, std::string_view indent);
// The value of one of a policy's keys.
std::string print_key(const RetryPolicy& policy, std::string_view key);
std::string print_pattern(const EndpointPattern& pattern, std::string_view indent);

// Of an entry with a name.
std::string identity_of(std::string_view endpoint);

}  // namespace policy_file
}  // namespace httpretry
