// The length of a response's body, as its headers give it.
#pragma once

#include <httpretry/http/headers.hpp>

namespace httpretry {

// Why the headers do not say where the body ends (RFC 9112 §6.3); empty where they do. libcurl
// takes the last of several lengths: what another program on the way takes for the body, or for the
// next response, would then be something else.
std::string length_problem(const Headers& headers);

}  // namespace httpretry
