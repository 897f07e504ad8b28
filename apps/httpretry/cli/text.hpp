// Environment variables, lists and counts in texts, and URLs for requests and messages.
#pragma once

#include <httpretry/client/report.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

// Returns the value of an environment variable, or "" if it is not set.
std::string environment_variable(const char* name);

// Returns the texts with `separator` between them.
std::string join(const std::vector<std::string>& texts, std::string_view separator);

// Returns "1 call" or "3 calls". `plural` is for nouns whose plural is not made with "s".
std::string counted(std::size_t count, const std::string& noun, const std::string& plural = "");

// Returns the URL, with a scheme in front if it has none, as curl does.
std::string with_scheme(const std::string& url, const std::string& scheme = "http");

// Returns the URL of a request for a message: "http://host/path?…", without its query and secrets.
std::string shown_url(const Request& request);

// Returns a malformed URL for a message, without anything that may be a password or a key.
std::string without_secrets(std::string_view malformed_url);

}  // namespace httpretry::cli
