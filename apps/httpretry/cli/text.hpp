// Texts in messages: times and URLs.
#pragma once

#include <httpretry/client/report.hpp>

#include <string>
#include <string_view>

namespace httpretry::cli {

// "12.3 s", "0.043 s".
std::string seconds(Duration time);
// With two decimals in a unit that suits the time: "1.50 s", "19.53 ms", "51.20 us".
std::string precise(Duration time);

// As curl: a URL without a scheme is http.
std::string with_scheme(const std::string& url);

// A malformed URL for a message, without what may be a password or a key.
std::string without_secrets(std::string_view malformed_url);

}  // namespace httpretry::cli
