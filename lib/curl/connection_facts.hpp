// What libcurl remembers of an exchange's connection.
#pragma once

#include <httpretry/connection_facts.hpp>
#include <httpretry/headers.hpp>

#include <curl/curl.h>

namespace httpretry {

// Certificates only where CURLOPT_CERTINFO was set.
ConnectionFacts connection_facts(CURL* easy);

}  // namespace httpretry
