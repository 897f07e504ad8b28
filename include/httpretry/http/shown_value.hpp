// The values of headers in a form that is safe to log.
#pragma once

#include <httpretry/export.hpp>

#include <string>
#include <string_view>

namespace httpretry {

// Returns "REDACTED" if the name of the header implies a secret (`tells_secret`). Otherwise returns
// the value with URLs redacted: each loses its user, its password and the values in its query and
// fragment. The same is done to a relative reference in Location, Referer, Link and similar
// headers. Control characters are kept; see `printable`.
[[nodiscard]] HTTPRETRY_API std::string shown_value(std::string_view header_name,
                                                    std::string_view value);

}  // namespace httpretry
