// Texts in messages: URLs.
#pragma once

#include <httpretry/client/report.hpp>

#include <string>
#include <string_view>

namespace httpretry::cli {

// Returns the value of an environment variable; empty if there is none.
std::string variable(const char* name);

// As curl: a URL without a scheme is http.
std::string with_scheme(const std::string& url);

// A malformed URL for a message, without what may be a password or a key.
std::string without_secrets(std::string_view malformed_url);

}  // namespace httpretry::cli
