// The links of a response, for code that needs to know why one cannot be followed.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/response.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace httpretry::detail {

// Returns the same as Response::link, or an error if there are links with this relation, but none
// of them has a usable URL.
[[nodiscard]] HTTPRETRY_API Result<std::optional<std::string>> find_link(const Response& response,
                                                                         std::string_view relation);

}  // namespace httpretry::detail
