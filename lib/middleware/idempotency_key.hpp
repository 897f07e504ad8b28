// A key that tells a server that two requests are one.
#pragma once

#include <string>

namespace httpretry {

// A random UUID (RFC 9562, version 4), from the numbers of the system.
std::string new_idempotency_key();

}  // namespace httpretry
