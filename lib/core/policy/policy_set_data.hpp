// PolicySet::Data, and the functions that make policies from layers.
//
// The layers of a policy are merged, key by key, and every value remembers its layer. A layer is a
// JSON object. It was read from a file, set on a command line, or written from a struct.
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
    bool named = false;  // false: `resolved.endpoint` is the JSON pointer of the entry
    std::string source;  // for example "policy.json:31:5"
  };

  ResolvedPolicy fallback;               // for requests that no entry matches
  std::vector<ResolvedPolicy> policies;  // the named policies, in the order of the file
  std::vector<Entry> entries;
  EndpointIndex index;  // of the entries
  std::vector<Problem> warnings;
  // The warnings about the values of a policy. Policies without warnings are left out.
  std::map<const RetryPolicy*, std::vector<Problem>> warnings_of_policies;

  static const Data& of(const PolicySet& set) { return *set.data_; }
  static PolicySet make_set(std::shared_ptr<const Data> data) { return PolicySet(std::move(data)); }
};

namespace detail::policy_file {

// Returns the text of presets.json.
std::string_view presets_text();

// The origin of a layer, as it is shown with each of its values.
struct LayerOrigin {
  std::string text;      // "built in", "preset gcs", or the name of a file
  bool is_file = false;  // `at` adds the line and the column to `text`
  // The values of a policy that was resolved earlier. They keep their sources. Otherwise nullptr.
  const PolicyValues* resolved = nullptr;

  [[nodiscard]] std::string at(const JsonNode& json) const;
};

// A value of a policy, of which upper layers may have replaced parts.
struct Layered {
  std::string_view key;
  const JsonNode* json = nullptr;
  const LayerOrigin* origin = nullptr;
  bool doubtful = false;  // the value that should replace it is wrong, so it is not checked further
  std::vector<Layered> members{};

  [[nodiscard]] const Layered* find(std::string_view name) const;
};

// Whether a layer replaces values below that a file states.
enum class FileValues : std::uint8_t { Replace, Keep };
// Merges an object that read_members has checked into the layers below. Members that are wrong are
// left out.
void merge_layer(Layered& below, const JsonNode& object, const Shape& shape,
                 const LayerOrigin& origin, FileValues file_values = FileValues::Replace);
// Merges a preset into the layers below. It replaces all blocks (Key::block) as a whole. Timeouts,
// server delays and the idempotency key of a file stay, because they belong to the server and not
// to the algorithm.
void merge_preset(Layered& below, const JsonNode& preset, const LayerOrigin& origin);

// Returns the lowest layer: a default-constructed RetryPolicy.
const Layered& built_in();

// A preset that was read and checked once. It lives as long as the program.
struct LoadedPreset {
  const JsonTree* tree;
  LayerOrigin origin;  // "preset gcs"
};
LoadedPreset load_preset(std::string_view name, std::string_view json);
// Returns the built-in preset with this name, or nullptr.
const LoadedPreset* loaded_preset(std::string_view name);
// Returns the preset that the key "preset" of a policy names, or nullptr without this key. Reports
// a problem if the preset does not exist.
const LoadedPreset* preset_of(const JsonNode& policy, Problems& problems);

// The values of the policies of one file, by their origins. Most policies share values of the same
// layer, so each value is made and stored only once.
struct ValueSource {
  const Key* parent;  // the key of the object that has the key; nullptr at the top
  const Key* key;
  const JsonNode* json;       // nullptr if the key is left out
  const LayerOrigin* origin;  // nullptr if the key is left out
  friend auto operator<=>(const ValueSource&, const ValueSource&) = default;
};
using ValuePool = std::map<ValueSource, std::shared_ptr<const PolicyValue>>;

// Returns ResolvedPolicy::guard_names. Blocks that no layer of a file states have the names in
// `before`.
std::shared_ptr<const GuardNames> guard_names_of(const Layered& policy,
                                                 const std::shared_ptr<const GuardNames>& before);
// Renames the blocks that the policy of an entry states itself to the identity of the entry. Unlike
// a JSON pointer, it does not change when entries move.
void name_guards(ResolvedPolicy& resolved, const JsonNode& entry);
// Reports blocks of scope "host" that several places state for the same host.
void check_guards_of_hosts(const PolicySet::Data& data, std::span<const JsonNode* const> entry_json,
                           Problems& problems);

// Reads a policy and all its values, in the order of the table. Reports keys that are missing or do
// not belong to their kind, at `policy` if they have no position.
ResolvedPolicy read_policy(const Layered& layered, const JsonNode& policy, Problems& problems,
                           ValuePool& pool);

// Reports values that contradict each other as errors, and values that can never have an effect as
// warnings. A problem is reported at a key of `policy`, the top layer, if one of its keys is
// involved. Warns also of values that are harmful. Returns the warnings, in the order of the file.
std::vector<Problem> check_policy(const Layered& layered, const RetryPolicy& resolved,
                                  const JsonNode& policy, Problems& problems);
// Returns whether the policy allows a warning.
bool is_allowed(Warning warning, const Layered& layered);
// Returns the end of the warning's message: how to allow it.
std::string how_to_allow(Warning warning);

// The settings of a builder.
struct Layer {
  OrderedJson json = OrderedJson::object();
};

// Sets a key such as "backoff.initial" in nested objects. The text is parsed as JSON if that is
// possible, otherwise it is a string.
void set_dotted(OrderedJson& object, std::string_view key, std::string_view text);

// Returns the built-in policy, which all others extend.
const ResolvedPolicy& standard();

// Reads the tests of a file whose other parts are in `data`. Reports problems, and leaves out the
// tests that have one.
std::vector<PolicyTest> read_tests(const JsonNode& tests, const PolicySet::Data& data,
                                   Problems& problems);

// Returns the identity of an entry with this name.
std::string identity_of(std::string_view endpoint);

// Returns the set, or an error with a line for each problem.
Result<PolicySet> set_of(CheckedPolicies checked);

// Ends an import: returns the policies of the builder and all warnings, or an error with a line for
// each problem if there are errors.
Result<ImportedPolicies> finish_import(const PolicySetBuilder& builder, Problems& problems);

}  // namespace detail::policy_file

}  // namespace httpretry
