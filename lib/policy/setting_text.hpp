// Settings: values of one object, each by its key or, for the parts of an object in it, by its keys
// with dots between, as a command line has them.
#pragma once

#include "lib/json/problems.hpp"

#include <span>
#include <string>
#include <utility>

namespace httpretry::policy_file {

using Setting = std::pair<std::string, std::string>;  // "backoff.initial", its value

// One object of them all, which the document owns. A value is JSON where its text parses, else a
// string; a later setting counts more than an earlier one.
const JsonNode& object_of(std::span<const Setting> settings, JsonTree& document);

}  // namespace httpretry::policy_file
