// What the readers of models, loads and triggers share.
#pragma once

#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/simulate/model.hpp>

namespace httpretry::simulation {

// "exponential(10ms)" or an object with a "kind".
extern const policy_file::Custom<Distribution> kDistribution;
extern const policy_file::List<policy_file::Custom<Trigger>> kTriggers;

// From 0 to 1.
inline constexpr policy_file::Number<double> kShare(0, 1);

bool read_trigger(const JsonNode& json, Trigger& trigger, Problems& problems);

// Reads the text of a file, or of the command line, into a tree. For "NAME:key=value,…" the object
// {"kind": NAME, key: value, …}; with `named` false, for "key=value,…" without a kind.
void read_text(std::string_view text, bool named, JsonTree& tree, Problems& problems);

// The recorded attempts in a file of reports: an array, or one object on each line.
[[nodiscard]] std::vector<RecordedAttempt> read_trace(const std::string& path, const JsonNode& at,
                                                      Problems& problems);

}  // namespace httpretry::simulation
