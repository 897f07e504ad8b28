// Requests to a URL that a response names: the target of a redirect, or a URL to poll.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>

#include <span>
#include <string>
#include <string_view>

namespace httpretry {

// Changes the URL of the request. Keeps userinfo only within the origin. At another origin, removes
// credentials and all headers but known harmless ones and those in `allowed`, because they may be
// secrets.
void move_to(Request& request, const Url& url, std::span<const std::string> allowed = {});

// The same, but another origin gets everything, too: userinfo, credentials, and all headers except
// Host.
void move_to_trusted(Request& request, const Url& url);

// Returns the URL `to` with the user name and the password of `from`, which is another URL.
std::string with_userinfo_of(std::string_view from, std::string to);

// The codes of libcurl that such errors have. None: libcurl has no such error.
enum class CurlCode { None = 0, UnsupportedProtocol = 1, MalformedUrl = 3, TooManyRedirects = 47 };

// Returns the error for a response that names a URL to which nothing is sent.
Error not_followed(const Response& response, CurlCode curl_code, std::string why);

}  // namespace httpretry
