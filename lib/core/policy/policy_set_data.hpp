// What a PolicySet holds, and how one is made of layers.
//
// Policies are laid over each other, key by key, and every value remembers its layer. A layer is a
// JSON object with positions, whether it was read from a file, set by a command line or written
// from a struct.
#pragma once

#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/policy/endpoint.hpp>
#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_import.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

struct PolicySet::Data {
  struct Entry {
    EndpointPattern pattern;
    ResolvedPolicy resolved;
    bool named = false;  // else `resolved.endpoint` is its pointer
    std::string source;  // "policy.json:31:5"
  };

  ResolvedPolicy fallback;               // where no entry matches
  std::vector<ResolvedPolicy> policies;  // those with names, in the order of the file
  std::vector<Entry> entries;
  EndpointIndex index;  // of the entries
  std::vector<Problem> warnings;

  static const Data& of(const PolicySet& set) { return *set.data_; }
  static PolicySet make_set(std::shared_ptr<const Data> data) { return PolicySet(std::move(data)); }
};

namespace policy_file {

// How a layer is named where its values are shown.
struct LayerOrigin {
  std::string text;        // "built in", "preset gcs"; or a file's name,
  bool positions = false;  // to which line and column are added
  // The values of a policy that was resolved before: they keep their sources.
  const PolicyValues* resolved = nullptr;

  [[nodiscard]] std::string at(const JsonNode& json) const;
};

// A value of a policy, of which upper layers may have replaced parts.
struct Layered {
  std::string_view key;
  const JsonNode* json = nullptr;
  const LayerOrigin* origin = nullptr;
  bool doubtful = false;  // what should have replaced it is wrong: nothing is concluded from it
  std::vector<Layered> members;

  [[nodiscard]] const Layered* find(std::string_view name) const;
};

// Lays an object over what is below, where read_members found it good. With `keep_written`, the
// values below that a file states stay.
void lay_over(Layered& below, const JsonNode& object, const Shape& shape, const LayerOrigin& origin,
              bool keep_written = false);
// A preset replaces the blocks that every preset states, whole. What a file says of timeouts,
// server delays and the key stays: they belong to the server, not to the algorithm.
void lay_preset_over(Layered& below, const JsonNode& preset, const LayerOrigin& origin);

// The default-constructed RetryPolicy, which is below all others.
const Layered& built_in();

// A preset that has been read and checked, once. They live as long as the program.
struct LoadedPreset {
  const JsonTree* tree;
  LayerOrigin origin;  // "preset gcs"
};
LoadedPreset load_preset(std::string_view name, std::string_view json);
// nullptr where there is none of that name.
const LoadedPreset* loaded_preset(std::string_view name);
// The preset that the key "preset" of a policy names; nullptr, and a problem, where there is none.
const LoadedPreset* preset_of(const JsonNode& policy, Problems& problems);

// The values of the policies of one file, by where they come from. Most come from the same layer,
// and are made and kept once.
struct ValueSource {
  const Key* parent;  // of the object that the key is in; nullptr at the top
  const Key* key;
  const JsonNode* json;       // nullptr where the key is left out
  const LayerOrigin* origin;  // likewise
  friend auto operator<=>(const ValueSource&, const ValueSource&) = default;
};
using ValuePool = std::map<ValueSource, std::shared_ptr<const PolicyValue>>;

// ResolvedPolicy::guard_names; those of `before` for blocks that no layer of a file states.
std::shared_ptr<const GuardNames> guard_names_of(const Layered& policy,
                                                 const std::shared_ptr<const GuardNames>& before);
// In the policy of an entry: what is stated there is known by what identifies the entry.
void name_guards(ResolvedPolicy& resolved, const JsonNode& entry);
// Blocks of scope "host" that differ, and are for one host.
void check_guards_of_hosts(const PolicySet::Data& data, std::span<const JsonNode* const> entries,
                           Problems& problems);

// Reads the whole: the policy, and every value in the order of the table. Keys that are missing, or
// do not belong to their kind, are reported: at `policy` where no position of its own is known.
ResolvedPolicy read_policy(const Layered& layered, const JsonNode& policy, Problems& problems,
                           ValuePool& pool);

// What no single value of a policy can be blamed for. Contradictions are errors, what can never
// matter is a warning. They are told at a key of `policy`, the topmost layer, where one of its keys
// has a part in it.
void check_policy(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                  Problems& problems);

// What a builder has been told.
struct Layer {
  OrderedJson json = OrderedJson::object();
};

// Sets "backoff.initial" in objects in objects. The text is JSON where it parses, else a string.
void set_dotted(OrderedJson& object, std::string_view key, std::string_view text);

// What is below all policies.
const ResolvedPolicy& standard();

// The tests of a file, of which the rest has been read. Those that are wrong are left out, with
// problems.
std::vector<PolicyTest> read_tests(const JsonNode& tests, const PolicySet::Data& data,
                                   Problems& problems);

// Of an entry with a name.
std::string identity_of(std::string_view endpoint);

// What was read, as one result: the set, or a line for each error.
Result<PolicySet> set_of(CheckedPolicies checked);

// What both importers end with: the set that was built, with the problems of the report; or the
// errors among them.
Result<ImportedPolicies> imported(const PolicySetBuilder& builder, Problems& problems);

}  // namespace policy_file

}  // namespace httpretry
