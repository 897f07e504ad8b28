// The flags for connections, which `httpretry`, `httpretry batch` and `httpretry work` share in
// part.
#pragma once

#include "send/options.hpp"

namespace httpretry::cli {

// Returns the flags for the limits of time and speed, the addresses and the HTTP version.
std::vector<Flag> connection_flags(SendOptions& to);
// Returns the flags for the proxy, except --noproxy.
std::vector<Flag> proxy_flags(SendOptions& to);
// Returns the flags for the addresses and the socket of a connection.
std::vector<Flag> address_flags(TransportOptions& to);
// Returns the flags for names and passwords: -u with its schemes, and those for netrc files.
// `user_help` is the help text of -u.
std::vector<Flag> credential_flags(std::optional<std::string>& user, Credentials::Scheme& auth,
                                   TransportOptions& to, std::string_view user_help);
// Returns the flags for TLS with servers.
std::vector<Flag> tls_flags(TransportOptions& to);

}  // namespace httpretry::cli
