// The parts that the readers of models, loads and triggers share.
#pragma once

#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/simulate/model.hpp>

namespace httpretry::simulation {

// "exponential(10ms)" or an object with a "kind".
extern const policy_file::Custom<Distribution> kDistribution;
extern const policy_file::List<policy_file::Custom<Trigger>> kTriggers;

// A number from 0 to 1.
inline constexpr policy_file::Number<double> kShare(0, 1);

bool read_trigger(const JsonNode& json, Trigger& trigger, Problems& problems);

// The short form of the command line: "NAME:key=value,…", which gives the object {"kind": NAME,
// key: value, …}, or "key=value,…", which gives {key: value, …}.
enum class ShortFormat : std::uint8_t { WithKind, WithoutKind };

// Parses JSON or the short form of the command line into a tree.
void read_text(std::string_view text, ShortFormat format, JsonTree& tree, Problems& problems);

// Reads the recorded attempts from a file of reports: a JSON value, or one JSON object per line.
// Problems are reported at the position of `file_node`.
[[nodiscard]] std::vector<RecordedAttempt> read_trace(const std::string& path,
                                                      const JsonNode& file_node,
                                                      Problems& problems);

}  // namespace httpretry::simulation
