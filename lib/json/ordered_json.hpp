// The one kind of JSON value that is written: its members stay in the order they were set in.
#pragma once

#include <nlohmann/json.hpp>

namespace httpretry {

using OrderedJson = nlohmann::ordered_json;

}  // namespace httpretry
