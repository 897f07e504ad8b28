// The origins of PendingRule::origins: to which a pending response may send us.
#pragma once

#include <httpretry/http/url.hpp>

#include <string_view>

namespace httpretry::policy {

// "https://status.example.com:8443", or "https://*.example.com": http or https, and nothing after
// the port.
HTTPRETRY_API bool is_origin_pattern(std::string_view text);
// `pattern` is one.
HTTPRETRY_API bool fits_origin(std::string_view pattern, const Url& url);

}  // namespace httpretry::policy
