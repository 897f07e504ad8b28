// Environment variables, and URLs for requests and messages.
#pragma once

#include <httpretry/client/report.hpp>

#include <string>
#include <string_view>

namespace httpretry::cli {

// Returns the value of an environment variable, or "" if it is not set.
std::string variable(const char* name);

// Returns the URL, with "http://" in front if it has no scheme, as curl does.
std::string with_scheme(const std::string& url);

// Returns a malformed URL for a message, without anything that may be a password or a key.
std::string without_secrets(std::string_view malformed_url);

}  // namespace httpretry::cli
