// A policy is laid over others, key by key, and every value remembers which layer it came from.
#pragma once

#include "lib/json/problems.hpp"
#include "lib/policy/keys.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace httpretry::policy_file {

// What a layer is called where its values are shown.
struct Source {
  std::string text;        // "built in", "preset gcs"; or a file's name,
  bool positions = false;  // with which line and column go
  // The values of a policy that was resolved before: shown as they were then.
  const PolicyValues* resolved = nullptr;

  [[nodiscard]] std::string at(const JsonNode& json) const;
};

// A value of a policy, of which upper layers may have replaced parts.
struct Layered {
  std::string_view key;
  const JsonNode* json = nullptr;
  const Source* source = nullptr;
  bool doubtful = false;  // what should have replaced it is wrong: nothing is concluded from it
  std::vector<Layered> members;

  [[nodiscard]] const Layered* find(std::string_view name) const;
};

// What is wrong with an object's own keys and values, whatever lies below it.
bool check_object(const JsonNode& object, const Shape& shape, Problems& report);

// Only what check_object found good is laid over.
void lay_over(Layered& below, const JsonNode& object, const Shape& shape, const Source& source);
// A preset replaces the blocks that every preset states, whole. What the file says of timeouts,
// hints and key stays: they belong to the place, not to the algorithm.
void lay_preset_over(Layered& below, const JsonNode& preset, const Source& source);

// The policy `standard`, as what lies below all others.
const Layered& built_in();
// nullptr where there is no preset of that name.
const JsonNode* preset_json(std::string_view name);
// "preset gcs"; of a name that has a preset.
const Source& preset_source(std::string_view name);
// "; did you mean …", or nothing.
std::string near_preset(std::string_view name);

// Reads the whole. What only shows now (a key that is missing, or does not belong to its kind) is
// reported; at `policy` where it can be said nowhere better.
std::shared_ptr<const RetryPolicy> read_policy(const Layered& layered, const JsonNode& policy,
                                               Problems& report);
// The values of the policies of one file. Most of them come from the same place, and are made and
// kept once.
class ValuePool {
 public:
  struct Origin {
    const Key* parent;  // of the object that the key is in; nullptr at the top
    const Key* key;
    const JsonNode* json;  // nullptr where nobody has written it
    const Source* source;  // likewise
    friend bool operator==(const Origin&, const Origin&) = default;
  };
  std::shared_ptr<const PolicyValue>& at(const Origin& origin) { return values_[origin]; }

 private:
  struct Hash {
    std::size_t operator()(const Origin& origin) const;
  };
  std::unordered_map<Origin, std::shared_ptr<const PolicyValue>, Hash> values_;
};

// Every effective value, in the order of the table.
PolicyValues values_of(const Layered& layered, ValuePool& pool);

}  // namespace httpretry::policy_file
