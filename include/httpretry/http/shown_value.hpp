// The value of a header as a log may show it.
#pragma once

#include <httpretry/export.hpp>

#include <string>
#include <string_view>

namespace httpretry {

// Returns "REDACTED" if the name of the header tells a secret (`tells_secret`). Otherwise returns
// the value, but each URL in it has lost its user, its password and the values of its query and
// fragment. So has a relative reference in Location, Referer, Link and the like. Control characters
// are still there; see `printable`.
[[nodiscard]] HTTPRETRY_API std::string shown_value(std::string_view header_name,
                                                    std::string_view value);

}  // namespace httpretry
