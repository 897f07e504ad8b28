// Flags about the way to a server, as the options of the library's transport.
#pragma once

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/transport.hpp>

#include <string>

namespace httpretry::cli {

// "name:password" for a proxy. Throws UsageError.
Credentials proxy_credentials(const std::string& text);

// curl's --resolve HOST:PORT:ADDRESS as an entry of connect_to. Throws UsageError.
std::string resolve_entry(const std::string& text);

// curl's FILE[:PASSWORD]; a colon of the name is written "\:".
void set_certificate(ClientCertificate& certificate, const std::string& text);

// What the library says of an option, with the name of the flag that it came from.
std::string in_words_of_flags(std::string message);

// The certificates that curl's own program finds in the environment, where no flag names some.
void add_environment(TransportOptions& connection);

}  // namespace httpretry::cli
