// Converts the values of connection flags to TransportOptions.
#pragma once

#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>

#include <string>

namespace httpretry::cli {

// Of "name:password".
Credentials credentials_of(const std::string& text, Credentials::Scheme scheme);

// Adds the password to a "name" without one: asks for it on the terminal. `flag` is "-u" or "-U".
// Throws UsageError if there is no terminal; `cancel` as for read_whole.
void complete_credentials(std::string& text, const std::string& flag, int cancel);

// curl's FILE[:PASSWORD]; "\:" is a colon in the file name.
void set_certificate(ClientCertificate& certificate, const std::string& text);

// Replaces the option at the start of an error message by its flag: "TransportOptions::ca_file …"
// becomes "option --cacert …".
std::string with_flag_name(std::string message);

// As curl: if no flag sets the certificates to trust, takes them from the environment.
void add_environment(TransportOptions& connection);

}  // namespace httpretry::cli
