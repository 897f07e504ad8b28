#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/transport.hpp>

#include <curl/curl.h>

namespace httpretry {

std::string transport_version() { return curl_version(); }

}  // namespace httpretry
