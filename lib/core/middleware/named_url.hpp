// Requests to a URL that a response names: the target of a redirect, or a URL to poll.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>

#include <span>
#include <string>

namespace httpretry {

// Changes the URL of the request. Keeps userinfo only within the origin. At another origin, removes
// credentials and all headers but known harmless ones and those in `allowed`, because they may be
// secrets.
void move_to(Request& request, const Url& url, std::span<const std::string> allowed = {});

// Returns the error for a response that names a URL to which nothing is sent. `curl_code` is
// libcurl's code for this error: 1 for an unsupported protocol, 3 for a malformed URL, 0 if libcurl
// has no such error.
Error not_followed(const Response& response, int curl_code, std::string why);

}  // namespace httpretry
