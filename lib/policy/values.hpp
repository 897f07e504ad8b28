// Single values of a policy: from JSON, and back.
#pragma once

#include "lib/json/problems.hpp"
#include "lib/policy/keys.hpp"

#include <httpretry/retry/retry_policy.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::policy_file {

// Puts the value into the field of the key; false, and a problem, where it is none for the key.
// Without a field it is only looked at. Objects are not for this function: see policy_layers.hpp.
bool read_value(const Key& key, const JsonNode& json, void* field, Problems& report);

// As JSON; empty where it is one that a file leaves out.
std::string print_value(const Key& key, const void* field);

// Parts of read_value with more users than one.
bool read_error_codes(const JsonNode& json, std::vector<ErrorRule>* field, Problems& report);
bool read_statuses(const JsonNode& json, StatusSet* field, Problems& report);
std::string print_error_codes(const std::vector<ErrorRule>& rules);
std::string print_statuses(const StatusSet& statuses);

// The duration that `text` says, or what is wrong with it: "is negative".
std::pair<Duration, std::string> duration_in(std::string_view text);
std::optional<double> number_in(const JsonNode& json);
// `"ful" is not one of none, full; did you mean "full"?`
std::string not_one_of(const JsonNode& json, Words words, const Problems& report);
// False, and a problem, where it is of another type.
bool expect(const JsonNode& json, JsonNode::Type type, std::string_view what, Problems& report);
// The key of the shape that the member names; nullptr, and a problem, where there is none.
const Key* known_key(const JsonNode& member, const Shape& shape, Problems& report);

}  // namespace httpretry::policy_file
