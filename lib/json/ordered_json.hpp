// The one kind of JSON value that is written: its members stay in the order they were set in.
#pragma once

#include <httpretry/export.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace httpretry {

using OrderedJson = nlohmann::ordered_json;

// The text for people to read: what fits into a line is on one line. The outer `levels` of objects
// and arrays have a line for each member in any case. Bytes that are not UTF-8 are replaced.
HTTPRETRY_API std::string json_text(const OrderedJson& json, int levels);

}  // namespace httpretry
