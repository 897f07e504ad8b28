// The patterns of PendingRule::origins: the origins to which a pending response may send the
// client.
#pragma once

#include <httpretry/http/url.hpp>

#include <string_view>

namespace httpretry::policy {

// Returns whether `text` is an origin, such as "https://status.example.com:8443", or a wildcard,
// such as "https://*.example.com". The scheme must be http or https, and nothing may follow the
// port.
bool is_origin_pattern(std::string_view text);
// Returns whether the origin of `url` matches `pattern`. Returns false for an invalid pattern.
bool fits_origin(std::string_view pattern, const Url& url);

}  // namespace httpretry::policy
