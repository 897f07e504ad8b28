// JSON pointers (RFC 6901) into JSON that was read.
#pragma once

#include "lib/core/json/detail/json.hpp"

#include <httpretry/export.hpp>

#include <string_view>

namespace httpretry::detail {

[[nodiscard]] HTTPRETRY_API bool is_json_pointer(std::string_view text);
// Returns the value at a valid pointer, or nullptr.
[[nodiscard]] HTTPRETRY_API const JsonNode* value_at(const JsonNode& json,
                                                     std::string_view pointer);

}  // namespace httpretry::detail
