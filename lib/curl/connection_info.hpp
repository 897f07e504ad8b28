// What libcurl knows of the connection of an exchange.
#pragma once

#include <httpretry/http/headers.hpp>
#include <httpretry/http/request.hpp>

#include <curl/curl.h>

namespace httpretry {

// Certificates only where CURLOPT_CERTINFO was set.
ConnectionInfo connection_info(CURL* easy);

}  // namespace httpretry
