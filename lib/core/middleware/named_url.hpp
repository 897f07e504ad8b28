// A request to a URL that a response names: of a redirect, or to poll.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>

#include <span>
#include <string>

namespace httpretry {

// Sends it there. Userinfo stays within the origin. For another origin, credentials and all headers
// go that may be secrets: all but the harmless ones, and `allowed`.
void move_to(Request& request, const Url& url, std::span<const std::string> allowed = {});

// The error of a response that names a URL where nothing is sent, and libcurl's number for it.
Error not_followed(const Response& response, int curl_code, std::string why);

}  // namespace httpretry
