// The content codings of a client: gzip, and those in TransportOptions::content_codings.
#pragma once

#include <httpretry/curl/transport_options.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// Returns the coding, or nullptr if the client does not support it. "x-gzip" is gzip.
const ContentCoding* find_coding(std::string_view name, const std::vector<ContentCoding>& more);
// Returns "gzip, br, zstd": gzip and the names of `more`.
std::string names_of_codings(const std::vector<ContentCoding>& more);
// Returns the request with its body encoded by RequestOptions::compress_with, and with
// Content-Encoding. Returns the request unchanged if it has no body or
// headers that describe the bytes of the body. Returns Errc::InvalidRequest for an unknown coding.
Result<Request> encoded(const Request& request, const std::vector<ContentCoding>& more);

}  // namespace httpretry
